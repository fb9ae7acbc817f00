"""Stages changed while a run goes on: changes resolved, their runs, total and direct effects."""

from compute.interventions.changing import Change
from compute.interventions.resolving import check_donors, needed, patches, resolve

__all__ = ["Change", "check_donors", "needed", "patches", "resolve"]
