"""Whether a text is in English: the rules and the network of the shipped judge know no other language."""

import re

from autoais.base.text.memo import memoize
from autoais.base.text.words import STOP_WORDS, words

# Frequent short words of 19 other languages in Latin letters. Words that English has too ("die", "in", "man", "pour")
# are left out; a text in English has far more of its own.
_FOREIGN_WORDS = (
    frozenset(
        word
        for word in """
    aber als auch auf aus bei bis das dass dem den der des durch eine einem einen einer eines für hat ist mit nach
    nicht oder sich sie sind und von vom werden wird wurde wurden zu zum zur über
    au aux avec ce cette ces dans de du elle est et il ils je la le les leur ne nous ont ou où par pas plus qui que
    sa sont sur un une été être était
    al como con del el ella en entre era es esta este fue ha hay la las lo los más muy no nos para pero por que se
    ser sin sobre su sus también un una y
    alla anche che chi da dal dalla degli dei del della delle dello di ed gli il io ma nel nella non per più quale
    questo sono stato una uno è
    ao aos as com da das do dos ela em entre foi mais mas na nas não no nos num numa pela pelo que se seu sua são
    também uma é à
    aan bij de deze die dit een en haar het hij is met naar niet ook op te uit van voor werd worden wordt zijn
    att av den det ett från för har hade med och om på som till var är
    af blev de den der det efter en er et fra ikke jeg med og på som til ved var å
    ei että hän ja joka jossa kun mukaan myös oli olivat ovat se sekä tai
    było był była być do jako jego jest które który na nie od oraz po przez się są w z ze że
    až byl byla bylo být ho je jeho jej jako k která které který na po před s se si jsou ve z za že
    ale au care ce cu din este fi fost într la mai nu pe prin sau sunt și în
    bir bu da daha de gibi ile için olan olarak oldu sonra ve çok
    bị các cho của có cùng của của khi là một những người này năm trong tại từ và với được đã
    adalah akan atau dalam dan dari dengan di ini itu juga kepada ke oleh pada sebagai tidak untuk yang
    a az egy el és ez hogy is meg nem volt voltak által
    alikuwa ambayo cha hii huo katika kwa la lakini mwaka na ni wa ya yake za
    ati fun gẹ́gẹ́ jẹ́ kí láti lọ ni ní nínú pẹ̀lú ti tí wọn àti ó
    """.split()
        if len(word) > 1 or not word.isascii()  # single letters are initials
    )
    - STOP_WORDS
    - frozenset("die den ha hay hat man no per plus sin son via".split())
)
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]")
# A word in lower case, as names and titles are not, with a letter that English lacks. Precomposed letters only.
_ACCENTED_WORD = re.compile(r"(?<![^\W\d_])(?=[a-z\u00df-\u024f\u1e00-\u1eff])[a-z]*[\u00df-\u024f\u1e00-\u1eff]")
_MIN_FOREIGN_WORDS = 3  # words of another language
_SHARE = 0.1  # of all words


def is_english(*texts: str) -> bool:
    """Whether texts may be in English together: neither in another script nor full of another one's function words.

    Text without function words (names, numbers, code) counts as English, and so may a short text in another language.
    """
    letters, latin, total, foreign, english = (
        sum(counts) for counts in zip(*map(_counts, texts or ("",)), strict=True)
    )
    if 2 * latin < letters:
        return False
    return bool(foreign < max(_MIN_FOREIGN_WORDS, _SHARE * total) or foreign <= 2 * english)


@memoize
def _counts(text: str) -> tuple[int, int, int, int, int]:
    """Return the numbers of letters, Latin letters, words, foreign words and English function words."""
    letters, tokens = _LETTER.findall(text), words(text)
    latin = sum(1 for letter in letters if _LATIN.match(letter))
    foreign = sum(word in _FOREIGN_WORDS for word in tokens) + len(_ACCENTED_WORD.findall(text))
    return len(letters), latin, len(tokens), foreign, sum(word in STOP_WORDS for word in tokens)
