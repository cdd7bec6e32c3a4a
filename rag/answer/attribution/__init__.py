"""Attribution: finds the passages that support the sentences of an answer."""
