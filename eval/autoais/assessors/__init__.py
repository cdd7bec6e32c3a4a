"""Language models in the place of TREC's assessors: nuggets, their assignment to answers, grades of relevance."""
