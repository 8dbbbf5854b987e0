"""Bytes of any kind for all that reads what strangers wrote: tables, sequences, models, kernels and formulas as text.

``python tests/robustness/readers.py --seconds 600`` shares the time among the readers, guided by coverage if `atheris`
is installed. In ``--out`` it writes the bytes that a reader was wrong about, and keeps what reached something new for
the next run. A reader is wrong if it raises anything but an error of mercer's, takes more than `LONGEST` seconds of the
processor, or more than `MOST` bytes beyond its input.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

with contextlib.suppress(ImportError):
    import atheris
if "atheris" in globals() and __name__ == "__main__":
    # atheris sees only what is found after its own finder, and an editable install puts one before all others.
    sys.meta_path.sort(key=lambda one: "Editable" in f"{one}" or "Redirecting" in f"{one}")
    sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
    with atheris.instrument_imports(include=["mercer"]):
        import mercer.cli.app
        import mercer.io
        import mercer.kernels
        import mercer.tables
    assert "Atheris" in type(mercer.__loader__).__name__, "mercer is not instrumented"
from click import ClickException
from safetensors import safe_open
from safetensors.numpy import save as as_bytes
from typer.main import get_command

import mercer
from mercer import KernelRidge, KernelRidgeClassifier, load
from mercer.cli.app import app
from mercer.errors import Cancelled, MercerError
from mercer.events import Cancel, observe
from mercer.io import TableEncoder, TableModel, read_sequences, read_table, save
from mercer.io.checkpoint_file import DIGEST, MAGIC, latest
from mercer.io.models import _digest
from mercer.kernels import Formula, parse

LONGEST, MOST = 1.0, 1e8
LIMIT = 1 << 16
"""Bytes of an input."""
BUDGET = "50MB"
"""What a table may take: the rest of `MOST` is for reading it."""
CLEARS = Path("/proc/self/clear_refs").exists()
"""Whether the system can tell the peak of memory since a moment."""


def of_file(ending: str, read: Callable[[Path], Any]) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        path = FOLDER / f"input{ending}"
        path.write_bytes(data)
        read(path)

    return target


def table(path: Path) -> None:
    """A table, and its encoding with the last column as the target."""
    found = read_table(path, memory=BUDGET)
    inputs, _ = found.split(found.columns[-1])
    TableEncoder(keep_text=True).fit(inputs).transform(inputs[:20])


def of_text(read: Callable[[str], Any]) -> Callable[[bytes], None]:
    return lambda data: read(data.decode("utf-8", "replace"))


def formula(text: str) -> None:
    """A formula is traced, proved or refuted, and computed on two rows."""
    kernel = Formula(text)
    mercer.check_kernel(kernel, n_features=2)
    np.asarray(kernel(np.eye(2), np.eye(2)))


def model(data: bytes) -> None:
    """These bytes as the description of a model, with arrays that would fit it, under the right digest."""
    header, arrays = written()
    text = data.decode("utf-8", "replace")
    path = FOLDER / "input.mercer"
    path.write_bytes(as_bytes(arrays, metadata={**header, "model": text, "sha256": _digest(text, arrays)}))
    found = load(path)
    if isinstance(found, TableModel):
        found.predict(rows()[:3])


def rows() -> Any:
    import pandas as pd

    X = np.random.default_rng(0).normal(size=(12, 2))
    return pd.DataFrame({"a": X[:, 0], "kind": list("uvw") * 4, "b": X[:, 1]})


@cache
def written() -> tuple[dict[str, str], dict[str, Any]]:
    """The header and the arrays of the file of a small model."""
    fitted = TableModel(TableEncoder(), KernelRidgeClassifier("gaussian"), "y").fit(rows(), list("no") * 6)
    save(fitted, FOLDER / "whole.mercer")
    with safe_open(FOLDER / "whole.mercer", framework="numpy") as opened:
        return opened.metadata(), {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118


def plain_model(path: Path) -> None:
    load(path)


@cache
def fit_command() -> Any:
    return get_command(app).commands["fit"]


def settings(path: Path) -> None:
    """The settings of ``mercer fit`` in a file, each as strict as on the command line."""
    with contextlib.suppress(ClickException):
        fit_command().make_context("fit", ["table.csv", "--config", str(path)])


def checkpoint(data: bytes) -> None:
    """These bytes as the header of a checkpoint, with the arrays that fit it, under the right checksum."""
    _, states = checkpoint_parts()
    text = MAGIC + len(data).to_bytes(8, "little") + data + states
    (FOLDER / "run").write_bytes(text + hashlib.blake2b(text, digest_size=DIGEST).digest())
    with mercer.checkpoint(FOLDER / "run"):
        KernelRidge("linear", solver="cholesky").fit(np.eye(2), [0.0, 1.0])


def written_checkpoint() -> bytes:
    """The checkpoint of a small fit after its first step."""
    path = FOLDER / "seed.checkpoint"
    with contextlib.suppress(Cancelled), mercer.checkpoint(path, every=0), observe(Cancel(when=path.exists)):
        KernelRidge("linear", solver="cg").fit(np.diag(np.arange(1.0, 7.0)), np.ones(6))
    found = path.read_bytes()
    path.unlink()
    return found


@cache
def checkpoint_parts() -> tuple[bytes, bytes]:
    """The header and the arrays of that checkpoint."""
    whole, start = written_checkpoint(), len(MAGIC) + 8
    end = start + int.from_bytes(whole[start - 8 : start], "little")
    return whole[start:end], whole[end:-DIGEST]


FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
CSV = 'a;kind;y\n1,5;u;no\n?;v;yes\n2,0;"w\nx";no\n'
FASTA = ">one\nACGT\nAC\n>two yes\nGGTT\n"
EDGES = b">\n\n>x\r\nACGU*-\r\n"
KERNELS = (
    b"0.5*gaussian(gamma='median').on([0, 2]) + linear()**2",
    b"spectrum(k=3).normalized()",
    b" + ".join([b"linear*2", *[b"dice"] * 17]),  # as long as sums that are read as balanced trees
)
FORMULAS = b"exp(-0.5*sqdist)", b"where(xx > 1e8, 1, 0)*(1 + dot)**3/(1 + l1)", b"min_sum/(x.dot+2)"
SETTINGS = (
    b'command = "fit"\nkernel = "gaussian(gamma=0.1)"\nalpha = 0.1\nholdout = false\ncolumns = ["a", "b"]\n',
    b"target = 'y' # no\nseed = 1_0\nmemory = \"1GB\"\n[a.b]\nc = 2024-02-29T00:00:00Z\n",
)
TARGETS: dict[str, tuple[Callable[[bytes], None], tuple[bytes, ...]]] = {
    "csv": (of_file(".csv", table), (CSV.encode(), b"x,date\n1,2024-02-29\n2,1999-12-31\n", b"p\n5%\n1e400\n-inf\n")),
    "tsv": (of_file(".tsv", table), (CSV.replace(";", "\t").encode(), "\ufeffä\tö\n1\t2\n".encode("utf-16"))),
    "text": (of_file(".txt", table), (b"one text\nanother\n", FASTA.encode(), b"1 1:0.5 3:2\n-1 2:1e3\n")),
    "svmlight": (of_file(".svmlight", table), (b"+1 1:0.5 7:1 # no\n-1 qid:3 2:2\n", b"1,2 1:1\n0 4294967296:1\n")),
    "npy": (of_file(".npy", table), ()),
    "npz": (of_file(".npz", table), ()),
    "gzip": (of_file(".csv.gz", table), ()),
    "fasta": (of_file(".fasta", lambda path: read_sequences(path, memory="1GB")), (FASTA.encode(), EDGES)),
    "kernel": (of_text(parse), KERNELS),
    "formula": (of_text(formula), FORMULAS),
    "model": (model, ()),
    "model file": (of_file(".mercer", plain_model), ()),
    "parquet": (of_file(".parquet", table), ()),
    "arrow": (of_file(".arrow", table), ()),
    "checkpoint": (checkpoint, ()),
    "checkpoint file": (of_file(".checkpoint", latest), ()),
    "configuration": (of_file(".toml", settings), SETTINGS),
}


def seeds(name: str) -> list[bytes]:
    """Inputs of this kind that are right, or nearly."""
    given = list(TARGETS[name][1])
    if name == "npy":
        for array in (np.arange(6.0).reshape(3, 2), np.arange(4, dtype=np.int8), np.array(["a", "b"])):
            np.save(FOLDER / "seed.npy", array)
            given.append((FOLDER / "seed.npy").read_bytes())
    elif name == "npz":
        np.savez_compressed(FOLDER / "seed.npz", X=np.eye(3), y=np.array(list("aba")))
        given = [(FOLDER / "seed.npz").read_bytes()]
    elif name == "gzip":
        import gzip

        given = [gzip.compress(one, mtime=0) for one in TARGETS["csv"][1]]
    elif name == "model":
        given = [written()[0]["model"].encode()]
    elif name == "model file":
        written()
        save(KernelRidge("linear").fit(np.eye(2), [0.0, 1.0]), FOLDER / "small.mercer")
        given = [(FOLDER / one).read_bytes() for one in ("small.mercer", "whole.mercer")]
    elif name in ("checkpoint", "checkpoint file"):
        given = [checkpoint_parts()[0] if name == "checkpoint" else written_checkpoint()]
    elif name in ("parquet", "arrow"):
        write = rows().to_parquet if name == "parquet" else rows().to_feather
        write(FOLDER / "seed")
        given = [(FOLDER / "seed").read_bytes()]
    return given


def wrong(name: str, data: bytes) -> str:
    """What the reader does wrong with these bytes, or nothing."""
    before, start = memory(), time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            TARGETS[name][0](data)
    except MercerError as error:
        if not str(error).strip() or len(str(error)) > 4000:
            return f"a message of {len(str(error))} characters"
    except (Exception, RecursionError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = next((one for one in reversed(frames) if "mercer/" in one.filename), frames[-1])
        return f"{type(error).__name__}: {error} in {place.filename}:{place.lineno}"
    seconds = time.process_time() - start
    taken = memory() - before
    if seconds > LONGEST:
        return f"{seconds:.1f} s"
    return f"{taken / 1e6:.0f} MB" if taken > MOST + 50 * len(data) else ""


def memory() -> int:
    """The most bytes that this process has had, since the last call if the system can tell."""
    found = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return found


def mutated(random: np.random.Generator, given: list[bytes]) -> bytes:
    """One of the inputs with some bytes replaced, moved, doubled, taken away, or mixed with another input."""
    data = bytearray(given[random.integers(len(given))])
    for _ in range(int(random.integers(1, 6))):
        i, j = sorted(random.integers(0, len(data) + 1, 2))
        j, way = min(j, i + 200), random.integers(6)
        if way == 0 and data:
            data[min(i, len(data) - 1)] = int(random.integers(256))
        elif way == 1:
            data[i:i] = bytes(data[i:j])
        elif way == 2:
            del data[i : min(j, i + 20)]
        elif way == 3:
            data[i : i + 1] = TOKENS[random.integers(len(TOKENS))]
        elif way == 4:
            other = given[random.integers(len(given))]
            data[i:j] = other[: j - i]
        elif data:
            data[i:i] = bytes(data[i : i + 1]) * int(random.integers(1, 50))
    return bytes(data[:LIMIT])


TOKENS = (
    b"\0", b"\xff", b"\n", b"\r", b'"', b",", b";", b"\t", b":", b"-", b"1e999", b"nan", b"-0", b"9" * 30, b"1" * 400,
    b"(", b")" * 20, b"**", b"[0]", b"null", b"{}", b"[]", b"true", b"\xef\xbb\xbf", "é漢".encode(), b"#", b">", b"%",
)  # fmt: skip


def cases(name: str, count: int, seed: int = 0) -> Iterator[bytes]:
    """So many mutations, the same at each run; the seeds come first."""
    given, random = seeds(name), np.random.default_rng([seed, len(name)])
    yield from given
    for _ in range(count):
        yield mutated(random, given)


def guided(name: str, seconds: float, out: Path) -> None:
    """Bytes that atheris chooses by what they reach, in a process of their own."""
    corpus = out / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(seeds(name)):
        (corpus / str(i)).write_bytes(data)
    gc.freeze()  # a third of the time went into looking through what was imported
    done = 0

    def one(data: bytes) -> None:
        nonlocal done
        done += 1
        if done % 100 == 0:
            counted(name, done)
        keep(name, data, out)

    options = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={LIMIT}",
        "-verbosity=0",
        "-rss_limit_mb=1024",
        "-entropic=0",
    ]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={out}/{name}-", str(corpus)], one)
    atheris.Fuzz()


def random_ones(name: str, seconds: float, out: Path) -> None:
    until, given, random = time.monotonic() + seconds, seeds(name), np.random.default_rng()
    done = 0
    while time.monotonic() < until:
        keep(name, mutated(random, given), out)
        done += 1
    counted(name, done)


def counted(name: str, done: int) -> None:
    (FOLDER / f"{name}.count").write_text(str(done))


def keep(name: str, data: bytes, out: Path) -> None:
    """Write the bytes down if the reader is wrong about them, once for each kind of error."""
    why = wrong(name, data)
    kind = hashlib.sha256(f"{why.split(':')[0]}{why[-20:] if ' in ' in why else ''}".encode()).hexdigest()[:8]
    if why and not (out / f"{name}-{kind}").exists():
        (out / f"{name}-{kind}").write_bytes(data)
        sys.stdout.write(json.dumps([name, why[:300], repr(data[:200])]) + "\n")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--out", type=Path, default=Path("fuzz"))
    parser.add_argument("names", nargs="*", default=list(TARGETS))
    given = parser.parse_args()
    given.out.mkdir(exist_ok=True)
    for name in given.names:
        work = guided if "atheris" in globals() else random_ones
        child = multiprocessing.Process(target=work, args=(name, given.seconds / len(given.names), given.out))
        child.start()
        child.join()
        count = FOLDER / f"{name}.count"
        how = f", and the process ended with {child.exitcode}" if child.exitcode else ""
        sys.stdout.write(f"{name}: {count.read_text() if count.exists() else 'some'} inputs{how}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
