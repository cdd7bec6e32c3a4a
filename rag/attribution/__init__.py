"""Attribution: which passage supports a sentence, before and after an answer is written."""
