"""Ratings of people: `ratings.jsonl`, one row per annotator, item and question, and the consensus of several people.

    {"item": "q12/1#0", "answer": "q12/1", "sentence": 0, "annotator": "ada", "question": "attributable",
     "value": "yes"}

`rag annotate export` writes such files; `autoais agreement` reads them.
"""
