"""Runs the Python tests and prints GoogleTest's lines, which ./run test counts.

    PYTHONPATH=python HDETACH_LIBRARY=build/libhdetach.so python3 python/tests/run.py [NAME...]

NAME: run only the tests whose name contains one of these. HDETACH_TEST_DEVICE=cuda runs them on the
GPU. Exits with 0 when all passed, 77 (skipped) when this Python has no torch, or another one than
HDETACH_TEST_TORCH says the library was built with, else 1.
"""
import os
import sys
import time
import traceback
import unittest
from pathlib import Path


class Lines(unittest.TestResult):
    """One line a test, as GoogleTest prints it."""

    counts = {"OK": 0, "SKIPPED": 0, "FAILED": 0}

    def startTest(self, test):
        super().startTest(test)
        self.began = time.perf_counter()
        self.failed = False

    def line(self, mark, test, note=""):
        self.counts[mark] += 1
        now = time.perf_counter()  # a class that is skipped as a whole never began
        milliseconds = round(1e3 * (now - getattr(self, "began", now)))
        name = test.id() if hasattr(test, "id") else str(test)
        label = {"OK": "[       OK ]", "SKIPPED": "[  SKIPPED ]", "FAILED": "[  FAILED  ]"}[mark]
        print(f"{label} Python.{name}{note} ({milliseconds} ms)", flush=True)

    def broken(self, test, error):
        traceback.print_exception(*error, file=sys.stdout)
        if not self.failed:  # a test of many parts may fail in several; it is one test
            self.line("FAILED", test)
        self.failed = True

    def addSuccess(self, test):
        if not self.failed:
            self.line("OK", test)

    def addSkip(self, test, reason):
        self.line("SKIPPED", test, f": {reason}")

    def addFailure(self, test, error):
        self.broken(test, error)

    def addError(self, test, error):
        self.broken(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            print(f"in {subtest}")
            self.broken(test, error)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def main(names):
    try:
        import torch
    except ImportError as error:
        print(f"[  SKIPPED ] Python.all: {error} (0 ms)")
        return 77
    wanted = os.environ.get("HDETACH_TEST_TORCH", torch.__version__)
    if torch.__version__.split(".")[:2] != wanted.split(".")[:2]:
        print(f"[  SKIPPED ] Python.all: torch {torch.__version__}, but the library was built with "
              f"{wanted} (0 ms)")
        return 77
    import hdetach
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print(f"hdetach {hdetach.__version__}, torch {torch.__version__}, {hdetach.loaded_from}")
    tests = list(flatten(unittest.defaultTestLoader.discover(str(Path(__file__).parent))))
    chosen = [test for test in tests if not names or any(name in test.id() for name in names)]
    result = Lines()
    unittest.TestSuite(chosen).run(result)
    counts = result.counts
    print(f"{counts['OK']} passed, {counts['FAILED']} failed, {counts['SKIPPED']} skipped")
    return 0 if counts["OK"] > 0 and counts["FAILED"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
