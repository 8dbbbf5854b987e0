import pytest

from mercer import accelerate
from mercer.accelerate import work


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(work, "WORTH", 0.0)
    monkeypatch.setattr(work, "IMPORT", 0.0)
    accelerate.install()
    yield
    accelerate.uninstall()
