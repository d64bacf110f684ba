"""What the tests of the command share: running it in a folder of its own, reading what it says, and
files of examples to give it. Arguments of every test: the command, the project's folder, the folder of
the compiled examples, the command with the device far."""

import gzip
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

COMMAND, SOURCE, EXAMPLES, FAR = (os.path.abspath(path) for path in sys.argv[1:5])

SANITIZER = os.environ.get("CHOIR_TEST_SANITIZE", "")
RELEASE = os.environ.get("CHOIR_TEST_BUILD", "Release") == "Release" and not SANITIZER
only_in_the_release = unittest.skipUnless(RELEASE, "long, and made of steps that others test")


def threads(test):
    """Marks a test in which threads of the command work beside each other. The thread sanitizer runs no other."""
    test.has_threads = True
    return test


def some_of(*cases, slow=2):
    """All in the release, whose bits they compare; the first ones where a sanitizer looks at the same code."""
    return cases if RELEASE else cases[:slow]


# A small training: seconds, also under a sanitizer.
SMALL = ("--data", "digits:500", "--batch", "32", "--epochs", "2")


def command_for(arguments):
    """The command that users get, except where an argument names the device far."""
    return FAR if any("far:" in str(argument) for argument in arguments) else COMMAND


def holds(text, fact):
    """Whether text contains the fact, with a number at either end of it as a whole (tests/facts.h)."""
    begin = r"(?<!\w)(?<!\d\.)" if fact[0].isdigit() else ""
    end = r"(?!\d)(?!\.\d)" if fact[-1].isdigit() else ""
    return re.search(begin + re.escape(fact) + end, text) is not None


class Case(unittest.TestCase):
    def setUp(self):
        if SANITIZER == "thread" and not hasattr(getattr(self, self._testMethodName), "has_threads"):
            self.skipTest("no threads")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments, env=None, **more):
        """Runs the command and returns what came of it, whatever that is."""
        merged = {name: value for name, value in os.environ.items() if name not in
                  ("CHOIR_DEVICES", "CHOIR_KERNELS", "CHOIR_INSTRUCTION_SET", "CHOIR_DATA_DIR",
                   "CHOIR_OVERLAP")}
        merged.update(env or {})
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("text", True)
        return subprocess.run([command_for(arguments), *(str(a) for a in arguments)], cwd=self.folder,
                              env=merged, stderr=subprocess.PIPE, timeout=250, check=False, **more)

    def start_within(self, bytes_, *arguments, **more):
        """The same with so much memory, and no more. Sanitizers map far more than they use."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_))
        return self.start(*arguments, **({} if SANITIZER else {"preexec_fn": limit}), **more)

    def succeed(self, *arguments, **more):
        """What the command prints when it ends well and has nothing to complain about."""
        done = self.start(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{arguments}: {done.stdout}")
        return done.stdout

    def events(self, *arguments, **more):
        """The JSON objects that it prints."""
        def refuse(word):
            raise ValueError(f"{word} is no JSON")
        lines = self.succeed(*arguments, "--json", **more).splitlines()
        return [json.loads(line, parse_constant=refuse) for line in lines]

    def fail_with(self, code, facts, *arguments, **more):
        """It must end with code and one line on standard error that holds a text or all of several."""
        done = self.start(*arguments, **more)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("choir"), done.stderr)
        for fact in (facts,) if isinstance(facts, str) else facts:
            self.assertTrue(holds(done.stderr, fact), f'"{done.stderr}" does not hold "{fact}"')
        self.assertLess(len(done.stderr), 600)
        return done


def idx(dimensions, values, kind=8):
    """The bytes of an IDX file; values are bytes in the file's own order."""
    return struct.pack(f">BBBB{len(dimensions)}I", 0, 0, kind, len(dimensions), *dimensions) + \
        bytes(values)


def write_examples(folder, count, shape, classes=3, compressed=False):
    """images.idx and labels.idx, in which a class is a bright part of the image."""
    size = 1
    for n in shape:
        size *= n
    images, labels = bytearray(), bytearray()
    for i in range(count):
        label = i * 7 % classes
        labels.append(label)
        for p in range(size):
            bright = p * classes // size == label
            images.append((220 if bright else 20) + (i * 31 + p * 17) % 30)
    pack = gzip.compress if compressed else bytes
    (folder / "images.idx").write_bytes(pack(idx((count, *shape), images)))
    (folder / "labels.idx").write_bytes(pack(idx((count,), labels)))
    return "idx:images.idx,labels.idx"


def crc32c(data, crc=0):
    crc ^= 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def forge(step, replicas=None, **metadata):
    """Lets a checkpoint say other things of itself, with checksums that are right."""
    weights, manifest = step / "weights.safetensors", step / "manifest.json"
    content = weights.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    said = json.loads(manifest.read_text())
    for place in header["__metadata__"], said["metadata"]:
        place.update({key.replace("__", "/"): value for key, value in metadata.items()})
        for key in [key for key, value in place.items() if value is None]:
            del place[key]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = struct.pack("<Q", len(text)) + text
    weights.write_bytes(head + content[8 + length:])
    said["replicas"] = said["replicas"] if replicas is None else replicas
    said["weights"].update(bytes=weights.stat().st_size, header=crc32c(head))
    del said["crc32c"]
    body = json.dumps(said, separators=(",", ":"))[:-1]
    manifest.write_text(f'{body},"crc32c":"{crc32c(body.encode()):08x}"}}\n')


def read_safetensors(path):
    """The header of a weights file, and its tensors' bytes by name, read by no library."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    tensors = {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()
               if name != "__metadata__"}
    return header, tensors


def write_safetensors(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(d for _, _, d in tensors.values()))


def main():
    unittest.main(argv=[sys.argv[0]], verbosity=1)
