"""Test Anything Protocol, as much of it as Meson reads: one numbered line a check."""
import sys


class Tap:
    """Prints a point at a time, so that a run that dies shows how far it came. `finish` ends the program."""

    def __init__(self):
        self.count = 0
        self.failed = 0
        print("TAP version 13", flush=True)

    def _point(self, good, name, tail=""):
        self.count += 1
        self.failed += not good
        name = name.replace("#", "no.")
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}{tail}", flush=True)

    def ok(self, name):
        self._point(True, name)

    def fail(self, name, why=""):
        self._point(False, name)
        self.note(why)

    def check(self, name, good, why=""):
        if good:
            self.ok(name)
        else:
            self.fail(name, why)
        return bool(good)

    def skip(self, name, why):
        self._point(True, name, f" # SKIP {why}")

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def finish(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed or not self.count else 0)
