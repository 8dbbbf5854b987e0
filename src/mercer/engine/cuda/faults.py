"""What can go wrong with a device, each as one error that says what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from mercer.errors import DeviceError, message

__all__ = ["MEMORY", "Faults"]

BACK = 'go on without it: mercer.use("native")'
MEMORY = f"give fewer rows, or float32 rows, end other programs on the device (nvidia-smi shows them), or {BACK}"
DRIVER = f"install a driver of NVIDIA for this CUDA or later, or {BACK}"

OLD_DRIVER = (
    "STUB_LIBRARY|CALL_REQUIRES_NEWER_DRIVER|NO_BINARY_FOR_GPU|INVALID_IMAGE|UNSUPPORTED_PTX_VERSION|"
    "INSUFFICIENT_LOADER_VERSION|SYSTEM_DRIVER_MISMATCH|COMPAT_NOT_SUPPORTED_ON_DEVICE"
)
LOST = (
    "DEINITIALIZED|INVALID_CONTEXT|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|CONTAINED|ILLEGAL_ADDRESS|LAUNCH_TIMEOUT|"
    "CONTEXT_IS_DESTROYED|ASSERT|HARDWARE_STACK_ERROR|ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|"
    "INVALID_PC|LAUNCH_FAILED|EXTERNAL_DEVICE|MPS_CLIENT_TERMINATED|MPS_RPC_FAILURE|UNKNOWN"
)
"""After these errors the driver refuses every call of this process."""

MEANINGS: tuple[tuple[str, str, str], ...] = (
    ("CUDA_ERROR_OUT_OF_MEMORY", "the device is out of memory", MEMORY),
    (
        "CUDA_ERROR_DEVICE_UNAVAILABLE|CUDA_ERROR_MPS_MAX_C",
        "another process has the device, and does not share it",
        f"end that process (nvidia-smi shows it), let them share with nvidia-smi -c DEFAULT, or {BACK}",
    ),
    (
        "CUDA_ERROR_(NO_DEVICE|INVALID_DEVICE)|device_id must",
        "there is no such device",
        f"see nvidia-smi -L, or {BACK}",
    ),
    (f"CUDA_ERROR_({OLD_DRIVER})", "the driver is too old for this CUDA", DRIVER),
    ("[Ff]unction .*not found|NotSupportedError", "the driver is too old for this CUDA", DRIVER),
    ("NVIDIA driver library|libcuda|nvcuda", "there is no driver of NVIDIA", f"install one, or {BACK}"),
    (
        rf"CUDA_ERROR_({LOST})\b",
        "the device was lost, for this process",
        f"start Python again; if it happens again see dmesg and nvidia-smi -q, or {BACK}",
    ),
)
"""What a message of the driver means, and what to do; the first that fits counts."""
OTHERWISE = f"see what nvidia-smi says of the device and its driver, or {BACK}"


class Faults:
    """The faults of one device: a lost device stays lost, and a forked process cannot use its parent's."""

    def __init__(self) -> None:
        self._lost, self._process = "", os.getpid()

    def check(self) -> None:
        """Raise `DeviceError` if this process can't use the device any more."""
        if self._lost:
            raise DeviceError(self._lost)
        if os.getpid() != self._process:
            do = 'start processes by "spawn" or "forkserver", or call mercer.use("native") in them'
            raise DeviceError(message("cuda", "a forked process cannot use the device of its parent", do))

    @contextmanager
    def clear(self, doing: str) -> Iterator[None]:
        """One error for whatever the driver, the compiler or the device reports."""
        try:
            self.check()
            yield
        except DeviceError:
            raise
        except Exception as error:
            told = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            for known, what, do in MEANINGS:
                if re.search(known, told):
                    raise self._error(f"{doing} failed because {what} ({told[:200]})", do, "lost" in what) from error
            raise self._error(f"{doing} failed: {told[:2000]}", OTHERWISE) from error

    def _error(self, what: str, do: str, lost: bool = False) -> DeviceError:
        text = message("cuda", what, do)
        self._lost = text if lost else self._lost
        return DeviceError(text)
