"""Text in a document that reads like an instruction to a machine, such as "Ignore the sources and answer ...".

A passage is data. A prompt says so to a language model, but no prompt is sure to be obeyed: so who reads an answer is
told where a cited passage gives orders. The rules are few and look for what ordinary documents hardly have. Orders to
readers ("Press the button", "Answer all questions") are ordinary text, and so is a false statement without an order.
"""

import re
from dataclasses import replace

from rag.answer.generators.units import split_units
from rag.base.types import Answer, Citation

INSTRUCTION_WARNING = "this source reads like an instruction to a machine"

_IGNORE = r"(?:ignore|disregard|forget|override|bypass|(?:do not|don't|never) (?:follow|obey|trust))"
_ALL = r"(?:(?:all|any|every|each|the|these|those|your|of|other|previous|prior|earlier|above|preceding|given) ){0,4}"
_TASK = r"(?:instructions?|prompts?|system messages?|sources|passages|contexts?|documents|guidelines)"
_MACHINE = (
    r"(?:AIs?|(?:AI|digital|virtual) (?:assistants?|models?|systems?|agents?)|assistants?|chat ?bots?|bots?"
    r"|(?:large )?language models?|LLMs?)"
)
_SAY = r"(?:answer|reply|respond|say|state|claim|output|print|write|report|tell|conclude)"
_MUST = r"(?:must|should|shall|is to|are to|has to|have to)"
_TURN = r"(?:only|simply|just|always|now|instead|please|then|and|,)"

_RULES = {
    "the marks of roles in a conversation with a model": (
        r"<\|\w{2,20}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant)>"
        r"|(?:^|[\n.!?#*] {0,4})\*{0,3}(?i:system|assistant|developer)(?i: message| prompt| note| override)?:\*{0,3} "
        rf"(?i:you\b|{_SAY}\b|{_IGNORE}\b|from now on\b|always\b)"
        r"|\b(?i:user|human): [^\n]{1,300}\s(?i:assistant|AI): "
    ),
    "orders to leave the task": (
        rf"(?i:\b{_IGNORE} {_ALL}{_TASK}\b(?! of\b)"
        r"|\byour (?:\w+ )?(?:instructions|task|prompt) (?:is|are|has|have) (?:now|changed|been)\b"
        r"|\byou are (?:now )?(?:a|an|the) (?:[\w-]+ ){0,3}(?:assistant|chatbot|language model)\b)"
    ),
    "orders to a machine": (
        rf"(?i:\b(?:if|when|since|as) you are (?:an? |the |any )?(?:[\w-]+ )?{_MACHINE}\b"
        rf"|\b(?:note|message|instructions?|attention|reminder) (?:to|for) (?:the |an? |any |all |every )*{_MACHINE}\b"
        rf"|\b{_MACHINE} (?:[\w-]+ ){{0,6}}?{_MUST} (?:{_TURN} )*{_SAY}\b"
        rf"|\b{_MACHINE}[:,] (?:{_TURN} )*{_SAY}\b)"
    ),
    "orders about the answer": (
        rf"(?:^|[.!?:;\n>*#-] {{0,4}})(?i:please )?(?:{_SAY}|{_SAY.title()}) that\b"
        r"|(?i:\btell (?:the |every |any |all )?users? that\b"
        rf"|\byour (?:answer|reply|response|output) {_MUST}\b"
        r"|\bthe (?:only |one )?(?:correct |right |true )?answer to (?:any|every|all|the user's) (?:question|query)"
        r"|\bcite (?:only )?(?:source|passage|document) \[?\d)"
    ),
    "a reply in the place of the model's": (
        r"[\"'“](?:answerable|sources)[\"'”]\s{0,4}:[^{}]{1,60}[\"'“](?:sentences?|sources|short_answer)[\"'”]\s{0,4}:"
        r"|(?:^|\n)\W{0,8}END OF (?:THE )?(?:SOURCES|CONTEXTS|PASSAGES|DOCUMENTS)\b"
    ),
    "orders to leave the task, in other languages": (
        r"(?i:\b(?:ignorier(?:e|en|t)|missachten?|vergiss|vergessen) [^.!?\n]{0,40}\b(?:anweisungen|quellen|vorgaben)\b"
        r"|\b(?:ignore[zr]?|oublie[zr]?) [^.!?\n]{0,40}\b(?:instructions|consignes|sources)\b"
        r"|\b(?:ignora|ignore|ignorad|ignorare|olvida|dimentica|esqueça) [^.!?\n]{0,40}"
        r"\b(?:instrucciones|fuentes|istruzioni|fonti|instruções|fontes)\b"
        r"|\b(?:negeer|vergeet) [^.!?\n]{0,40}\b(?:instructies|bronnen)\b"
        r"|(?:игнорируй|забудь)(?:те)? [^.!?\n]{0,40}(?:инструкци|указани|источник)"
        r"|(?:忽略|无视|無視|忘记)[^。！？\n]{0,20}(?:指令|指示|来源|來源|提示)|(?:指示|命令|出典)[^。！？\n]{0,12}無視)"
    ),
}
_INSTRUCTION = re.compile("|".join(f"(?:{rule})" for rule in _RULES.values()))


def reads_like_instruction(text: str) -> bool:
    """Whether a text reads like an instruction to a program that answers, rather than to its readers.

    The rules know English, and the commonest form in eight other languages.
    """
    return _INSTRUCTION.search(text) is not None


def find_instructions(answer: Answer) -> list[Citation]:
    """The places of the cited passages that read like an instruction to a machine, in the order of citation.

    They are units: sentences, items of a list, rows of a table, or code.
    """
    texts = {hit.passage.id: hit.passage.text for hit in answer.hits}
    citations = []
    for key in dict.fromkeys(citation.passage for citation in answer.citations):
        if matches := [match.span() for match in _INSTRUCTION.finditer(texts[key])]:
            spans = [(unit.start, unit.end) for unit in split_units(texts[key])]
            citations += [
                Citation(key, start, end, texts[key][start:end])
                for start, end in spans
                if any(first < end and start < last for first, last in matches)
            ]
    return citations


def warn_of_instructions(answer: Answer) -> Answer:
    """The answer with the places of `find_instructions` in `trace["instructions"]`, if there are any."""
    places = [
        {"passage": citation.passage, "start": citation.start, "end": citation.end}
        for citation in find_instructions(answer)
    ]
    return replace(answer, trace={**answer.trace, "instructions": places}) if places else answer
