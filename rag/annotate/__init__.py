"""Studies in which people judge cited answers.

from rag.annotate import create_study, open_study

study = create_study("study", answers="answers.jsonl", scheme="ais")
token = study.invite("ada")
"""
