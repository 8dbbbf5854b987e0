"""Tests and examples plan by documented rates, so that they take the same ways on all machines."""

import os

os.environ["MERCER_MACHINE"] = "off"
