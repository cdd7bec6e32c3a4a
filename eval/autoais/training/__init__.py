"""Training of the embedded judge (`autoais train`): simulated pairs, human labels, a cross-encoder, a calibration."""

from importlib.util import find_spec

from autoais.base.errors import missing_extra


def needs(*packages: str) -> None:
    """Raise `UserError` if a package is missing; called first, since the export comes hours after the start."""
    for package in packages:
        if find_spec(package) is None:
            raise missing_extra("training", "train", package)
