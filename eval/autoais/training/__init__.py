"""The recipe of the embedded judge: simulated pairs, human labels, a cross-encoder, a calibration (`autoais train`)."""

from importlib.util import find_spec

from autoais.errors import UserError


def needs(*packages: str) -> None:
    """`UserError` where one is not installed: asked for before the first step, as the export comes hours later."""
    for package in packages:
        if find_spec(package) is None:
            raise UserError(f'training needs {package}: pip install "attributed-rag[train]"')
