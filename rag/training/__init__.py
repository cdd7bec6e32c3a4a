"""How the models that ship with the system are made; needs the extra `train`."""
