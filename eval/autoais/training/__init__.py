"""The recipe of the embedded judge: simulated pairs, human labels, a cross-encoder, a calibration (`autoais train`)."""
