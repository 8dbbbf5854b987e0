"""Small files that say they are large: each is refused, or read within its budget, before memory is taken."""

from __future__ import annotations

import gc
import gzip
import io
import multiprocessing
import struct
import zipfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet
import readers

from mercer.errors import InvalidInput, MercerError
from mercer.points import read_points
from mercer.points.disk import pages
from mercer.tables import read_table

GIGABYTE = 1 << 30
BUDGET, MOST = 50_000_000, 100_000_000
"""Bytes that a table may take, and all that its reader takes meanwhile."""


def varint(number, signed=True):
    """A number of Thrift's compact protocol."""
    raw, out = (number << 1 if signed else number), bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    return bytes([*out, raw])


def zeros(size):
    """Zeros that zstd unpacks: 4 bytes for 131072 of them."""
    blocks = size >> 17
    head = b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little")
    return head + b"".join((1 << 17 << 3 | 2 | (i == blocks - 1)).to_bytes(3, "little") + b"\0" for i in range(blocks))


def written(table, **options):
    out = io.BytesIO()
    parquet.write_table(table, out, **{"compression": "zstd", "write_statistics": False, **options})
    return out.getvalue()


def with_footer(data, *replaced):
    """A Parquet file with other bytes in its footer."""
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - length], data[-8 - length : -8]
    for old, new in replaced:
        assert old in footer
        footer = footer.replace(old, new)
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def page(kind, unpacked, packed, struct_, count, encoding=0):
    levels = b"\x15\x06\x15\x06" if kind == 0 else b""
    head = b"\x15" + varint(kind) + b"\x15" + varint(unpacked) + b"\x15" + varint(packed)
    return head + struct_ + b"\x15" + varint(count) + b"\x15" + varint(encoding) + levels + b"\0\0"


def with_pages(pages, compression="zstd"):
    """A Parquet file of 20 numbers whose only column has these pages."""
    column = pa.schema([pa.field("x", pa.float64(), nullable=False)])
    data = written(pa.table({"x": np.arange(20.0)}, schema=column), use_dictionary=False, compression=compression)
    length = int.from_bytes(data[-8:-4], "little")
    size = parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).total_compressed_size
    made = data[:4] + pages + data[-8 - length :]
    return with_footer(made, (b"\x16" + varint(size), b"\x16" + varint(len(pages))))


def a_page_of_zeros():
    bomb = zeros(GIGABYTE)
    return with_pages(page(0, GIGABYTE, len(bomb), b"\x2c", 20) + bomb)


def a_second_page_of_zeros():
    few, bomb = pa.compress(bytes(80), "zstd", asbytes=True), zeros(GIGABYTE)
    first = page(0, 80, len(few), b"\x2c", 10) + few
    return with_pages(first + page(0, GIGABYTE, len(bomb), b"\x2c", 10) + bomb)


def a_page_longer_than_the_file():
    return with_pages(page(0, 160, 2 * GIGABYTE - 1, b"\x2c", 20) + bytes(200), "snappy")


def a_page_whose_size_is_said_twice():
    bomb = zeros(GIGABYTE)
    head = b"\x15\0\x15\x10\x15" + varint(len(bomb)) + b"\x05\x04" + varint(GIGABYTE)  # field 2 again, by its number
    return with_pages(head + b"\x3c\x15\x28\x15\0\x15\x06\x15\x06\0\0" + bomb)


def texts_that_are_one():
    places = pa.array(np.zeros(3000, np.int32))
    return written(pa.table({"x": pa.DictionaryArray.from_arrays(places, ["x" * 300_000])}), store_schema=False)


def texts_that_begin_alike():
    column = pa.array(["x" * 100_000] * 1500)
    options = {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}}
    return written(pa.table({"x": column}), **options)


def lists_of_zeros():
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(15_000_000, np.int8)), [0.0])
    column = pa.ListArray.from_arrays(pa.array([0, 15_000_000], pa.int32()), values)
    return written(pa.table({"x": column}), store_schema=False)


def many_rows_of_columns():
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200_000, np.int8)), [0.0])
    return written(pa.table({f"x{i}": column for i in range(300)}), store_schema=False)


def wide_texts():
    data = written(pa.table({"x": pa.array([b"abcdefgh"] * 3, pa.binary(8))}), use_dictionary=False, store_schema=False)
    return with_footer(data, (b"\x15\x0e\x15\x10", b"\x15\x0e\x15" + varint(GIGABYTE)))


def a_footer_of_many_groups():
    data = written(pa.table({"x": [1.0]}), store_schema=False)
    return with_footer(
        data, (b"\x19\x1c\x19\x1c", b"\x19\xfc" + varint(900_000, False) + b"\x19\xfc" + varint(900_000, False))
    )


def a_histogram_that_does_not_fit():
    """Arrow ends the process when it is asked about this column."""
    data = written(pa.table({"x": [1.0, None]}), store_schema=False)
    return with_footer(data, (b"\x15\x0a\x25\x02", b"\x15\x0a\x25\x00"))  # no value is missing


def arrow(table, compression=None, **options):
    out = io.BytesIO()
    with ipc.new_file(out, table.schema, options=ipc.IpcWriteOptions(compression=compression, **options)) as file:
        file.write(table)
    return out.getvalue()


def numbers_of_zeros():
    """A record batch of a buffer that unpacks to a gigabyte."""
    bomb = struct.pack("<q", GIGABYTE) + zeros(GIGABYTE)
    table = pa.record_batch({"x": np.frombuffer(np.random.default_rng(0).bytes(len(bomb) // 8 * 8 + 8), np.float64)})
    data = arrow(table, "zstd")
    at = data.index(struct.pack("<q", table.column(0).nbytes), 200)
    return data[:at] + bomb + data[at + len(bomb) :]


def nothing_in_many_rows():
    return arrow(pa.record_batch({"x": pa.nulls(200_000_000)}))


def runs():
    ends, values = pa.array([200_000_000], pa.int32()), pa.array([1.0])
    return arrow(pa.record_batch({"x": pa.RunEndEncodedArray.from_arrays(ends, values)}))


def views_of_one_text():
    text = b"x" * 300_000
    views = np.tile(np.frombuffer(struct.pack("<i4sii", len(text), text[:4], 0, 0), np.uint8), 3000)
    column = pa.Array.from_buffers(pa.string_view(), 3000, [None, pa.py_buffer(views.tobytes()), pa.py_buffer(text)])
    return arrow(pa.record_batch({"x": column}), "zstd")


def npy(shape):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue() + bytes(80)


def huge():
    return npy((1 << 40, 2))


def zipped(name, data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr(name, data)
    return out.getvalue()


def an_archive_that_hides_its_size():
    data = bytearray(zipped("x.npy", npy((20_000_000,)) + bytes(160_000_000)))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (800).to_bytes(4, "little")
    return bytes(data)


def many_lines():
    return gzip.compress(b"a,b\n" + b"1,2\n" * 20_000_000, 1)


def many_names():
    return b",".join(b"%d" % i for i in range(60_000)) + b"\n" + b"1," * 59_999 + b"1\n"


def many_cells():
    return zipped("xl/worksheets/sheet1.xml", bytes(200_000_000))


def a_far_feature():
    return b"1 199999:1\n" * 500


def table(path):
    read_table(path, memory=BUDGET)


def rows(path):
    for _ in read_points(path).source.chunks(10_000):
        pass


OF_PARQUET = (
    a_page_of_zeros, a_second_page_of_zeros, a_page_longer_than_the_file, a_page_whose_size_is_said_twice,
    texts_that_are_one, texts_that_begin_alike, lists_of_zeros, many_rows_of_columns, wide_texts,
    a_footer_of_many_groups, a_histogram_that_does_not_fit,
)  # fmt: skip
OF_ARROW = numbers_of_zeros, nothing_in_many_rows, runs, views_of_one_text
OTHERS = {
    many_lines: "csv.gz", many_names: "csv", a_far_feature: "svmlight", many_cells: "xlsx", huge: "npy",
    an_archive_that_hides_its_size: "npz",
}  # fmt: skip
NUMBERS = {
    a_page_of_zeros: "parquet", a_second_page_of_zeros: "parquet", a_page_whose_size_is_said_twice: "parquet",
    a_footer_of_many_groups: "parquet", numbers_of_zeros: "arrow", huge: "npy",
}  # fmt: skip
CASES = [
    *((make, "parquet", table) for make in OF_PARQUET),
    *((make, "arrow", table) for make in OF_ARROW),
    *((make, ending, table) for make, ending in OTHERS.items()),
    *((make, ending, rows) for make, ending in NUMBERS.items()),
]


def taken(read, path):
    """What is said of a file, and the most bytes that it takes to say so."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    readers.memory()
    before = readers.memory()
    try:
        read(path)
    except MercerError as error:
        return f"{type(error).__name__}: {error}", readers.memory() - before
    return "read", readers.memory() - before


@pytest.fixture(scope="module")
def child():
    """A process that reads, apart from the one that makes the files."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(taken, table, "nowhere.csv").result()
        yield pool


@pytest.mark.skipif(not readers.CLEARS, reason="the system does not tell the peak of memory since a moment")
@pytest.mark.parametrize(("make", "ending", "read"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_small_files_take_little_memory(tmp_path, child, make, ending, read):
    path = tmp_path / f"small.{ending}"
    path.write_bytes(make())
    said, size = child.submit(partial(taken, read), path).result()
    assert size < MOST, said
    assert said.startswith(("InvalidInput: small", "MemoryExceeded: small"))
    assert len(said) < 400


def test_honest_pages_of_every_kind_are_read(tmp_path):
    rng = np.random.default_rng(0)
    n = 12_000
    columns = {
        "few": rng.choice(["a", "bb", None], n),
        "many": np.array([f"{i:09d}" * 3 for i in range(n)]),
        "long": ["x" * 5000 if i % 1000 == 0 else "y" for i in range(n)],
        "numbers": rng.normal(size=n),
        "whole": rng.integers(0, 9, n),
        "nothing": pa.nulls(n, pa.float64()),
        "bytes": pa.array([b"0123456789abcdef"] * n, pa.binary(16)),
        "dates": pa.array(np.arange(n, dtype=np.int32), pa.date32()),
        "lists": pa.array([[1.0, 2.0]] * n),
    }
    made = pa.table(columns)
    for options in (
        {}, {"data_page_version": "2.0"}, {"write_page_checksum": True}, {"use_dictionary": False},
        {"data_page_size": 1000, "row_group_size": 1700}, {"dictionary_pagesize_limit": 10_000},
        {"use_dictionary": False, "column_encoding": {"many": "DELTA_BYTE_ARRAY"}}, {"compression": "gzip"},
    ):  # fmt: skip
        path = tmp_path / "a.parquet"
        parquet.write_table(made, path, **options)
        found = read_table(path, memory="1GB").frame
        assert found.drop(columns="lists").equals(made.to_pandas().drop(columns="lists")), options
        assert found["lists"].map(list).tolist() == made.column("lists").to_pylist(), options


def reads(data):
    return lambda length, at: data[at : at + length]


def test_headers_with_long_texts_are_followed():
    text = b"x" * 3000
    texts = b"".join(b"\x18" + varint(len(text), signed=False) + text for _ in range(2))
    head = b"\x15\0\x15\x10\x15\x10\x2c\x15\x02\x15\0\x15\x06\x15\x06\x1c" + texts + b"\x16\0\0\0\0"
    found = pages.pages_of(reads((head + bytes(8)) * 3), 0, 3 * (len(head) + 8), 3, "x", "a.parquet")
    assert found == (8, 3, 0, 0, 24, 8, False)


def test_a_dictionary_has_a_byte_for_each_entry():
    made = page(2, 8, 8, b"\x4c", 60_000_000) + bytes(8)
    with pytest.raises(InvalidInput, match=r"a\.parquet: a page of column 'x' .* 60000000 values"):
        pages.pages_of(reads(made), 0, len(made), 1, "x", "a.parquet")
