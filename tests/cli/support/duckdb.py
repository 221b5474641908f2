# SPDX-License-Identifier: Apache-2.0
# Bare libduckdb by its C API: makes input files for the tests, such as Parquet.
import ctypes
import os

from command import SOURCE


def run(*statements):
    """Runs the statements in an instance of their own."""
    library = ctypes.CDLL(os.path.join(SOURCE, "third_party/duckdb/lib/libduckdb.so"))
    library.duckdb_result_error.restype = ctypes.c_char_p
    database, connection = ctypes.c_void_p(), ctypes.c_void_p()
    result = (ctypes.c_char * 256)()  # larger than duckdb_result
    assert library.duckdb_open(None, ctypes.byref(database)) == 0
    assert library.duckdb_connect(database, ctypes.byref(connection)) == 0
    for sql in statements:
        if library.duckdb_query(connection, sql.encode(), ctypes.byref(result)) != 0:
            raise RuntimeError(library.duckdb_result_error(ctypes.byref(result)).decode())
        library.duckdb_destroy_result(ctypes.byref(result))
    library.duckdb_disconnect(ctypes.byref(connection))
    library.duckdb_close(ctypes.byref(database))


def write_parquet(path, query):
    run(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path
