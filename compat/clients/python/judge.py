"""What the Python judges share: one line for each thing shown, "ok NAME", "FAIL NAME | WHY" or "skip NAME | WHY", and "done" at
the end. ../../clients_test.go makes a test of each line and says what the topics are."""
import time
import traceback

PER_ROUND = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
THREE = (None, b"", b"x")
NULLS = [(k, v) for k in THREE for v in THREE]
HEADERS = [("h", v) for v in THREE]


def value(prefix, i):
    return f"{prefix}{i}-{'text ' * 20}".encode()


def passed(name):
    print("ok", name, flush=True)


def failed(name, e):
    where = next((f for f in reversed(traceback.extract_tb(e.__traceback__)) if f.filename.endswith("_judge.py")), None)
    at = f" ({where.name}:{where.lineno})" if where else ""
    print("FAIL", name, "|", f"{type(e).__name__}: {e}{at}".replace("\n", " "), flush=True)


def until(seconds, ok, what="not in time"):
    end = time.time() + seconds
    while not ok():
        assert time.time() < end, what
        time.sleep(0.05)
