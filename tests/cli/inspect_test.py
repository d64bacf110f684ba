"""choir inspect and choir bench input: what a file holds, and what is wrong with it."""

import gzip
import json
import os
import struct
import subprocess
import sys
import unicodedata
import zipfile

from command import COMMAND, Case, idx, main, only_in_the_release


def npy(descr, shape, data, fortran=False):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class Inspect(Case):
    def write(self, name, content):
        (self.folder / name).write_bytes(content)
        return name

    def test_a_table(self):
        self.write("t.csv", b"kind,size\ncat,4\nhen,NA\ncat,2.5\n")
        text = self.succeed("inspect", "t.csv")
        self.assertIn("t.csv: csv\n", text)
        self.assertRegex(text, r"kind +text  cat, hen\n")
        self.assertRegex(text, r"size +numbers, 1 without a value\n")
        self.assertIn("example 0: cat 4\n", text)
        self.assertIn("2 complete rows; 1 rows have a missing value\n", text)
        self.write("u.tsv", b"kind\tsize\ncat\t4,5\nhen\t2\n")
        text = self.succeed("inspect", "u.tsv")
        self.assertIn("u.tsv: csv, separator: tab\n", text)
        self.assertRegex(text, "size +text, 2 numbers with a decimal comma ")
        text = self.succeed("inspect", "u.tsv", "--decimal", "comma", "--separator", "tab", "--missing-values", "?")
        self.assertIn("  row 1: cat 4.5\n  row 2: hen 2\n  2 rows\n", text)
        self.write("v.csv", b"x\n" + b"1\n" * 20 + b"?\n")
        self.assertRegex(self.succeed("inspect", "v.csv"), r'x +text, 20 numbers \(row 21: "\?"\) ')
        (event,) = self.events("inspect", "v.csv")
        (column,) = event["columns"]
        self.assertEqual((event["separator"], column["holds"], column["mostly"], column["others"], column["other_row"],
                          column["other"]), ("comma", "text", "numbers", 1, 21, "?"))
        (event,) = self.events("inspect", "csv:t.csv")
        self.assertEqual([c["without_value"] for c in event["columns"]], [0, 1])
        self.assertEqual((event["kind"], event["rows"], event["dropped"]), ("csv", 2, 1))
        self.assertEqual([c["dtype"] for c in event["columns"]], ["i32", "f64"])

    def test_arrays_and_text(self):
        self.write("i.idx", idx((3, 2), range(6)))
        self.assertIn("example 2: [4 5]\n  3 rows\n", self.succeed("inspect", "i.idx"))
        header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}"
        self.write("n.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header +
                   b"\x07\0\0\0\xff\xff\xff\xff")
        self.assertIn("example 1: -1\n  2 rows\n", self.succeed("inspect", "n.npy"))
        self.write("x", b"hi")
        self.assertIn('example 0: "hi"\n  1 rows\n', self.succeed("inspect", "lines:x"))

    def test_arrays_of_several_lengths(self):
        """Keras' mnist.npz has two lengths; others have texts and single values beside the data."""
        arrays = {"x_train": ("|u1", (6, 2, 2), bytes(range(24))), "y_train": ("|u1", (6,), bytes([0, 1] * 3)),
                  "x_test": ("|u1", (4, 2, 2), bytes(16)), "y_test": ("|u1", (4,), bytes([0, 1] * 2)),
                  "name": ("|S5", (), b"mnist"), "n": ("<f8", (), bytes(8))}
        with zipfile.ZipFile(self.folder / "m.npz", "w", zipfile.ZIP_DEFLATED) as z:
            for name, array in arrays.items():
                z.writestr(name + ".npy", npy(*array))
            fields = npy([("a", "<f4", (2,)), ("b]", "|S3")], (2,), bytes(22))
            z.writestr("fields.npy", fields)
        text = self.succeed("inspect", "m.npz")
        for line in ("x_train +u8 \\[6, 2, 2\\]", "name +\\|S5 \\[\\], not a column", "n +f64 \\[\\], not a",
                     "fields +record \\[2\\]", "6 rows of x_train, y_train", "4 rows of x_test, y_test"):
            self.assertRegex(text, f"  {line}")
        (event,) = self.events("inspect", "m.npz")
        self.assertEqual([a["shape"] for a in event["arrays"]], [[6, 2, 2], [6], [4, 2, 2], [4], [], [], [2]])
        (event,) = self.events("inspect", "m.npz#x_test,y_test")
        self.assertEqual((event["rows"], len(event["columns"])), (4, 2))
        self.fail_with(1, 'no array "z"', "inspect", "npz:m.npz#z")
        self.fail_with(1, ("#NAME,NAME", "1 to 32"), "inspect", "m.npz#x_test,")
        self.write("t.csv", b"a\n1\n")
        self.fail_with(1, ("csv", "no arrays", "npz"), "inspect", "t.csv#a")
        quick = ("--model", "mlp", "--widths", "4", "--epochs", "1", "--batch", "2")
        self.fail_with(1, "npz:m.npz#NAME,NAME", "train", *quick, "--data", "npz:m.npz")
        for data in ("npz:m.npz#x_train,y_train", "m.npz#y_test,x_test"):
            self.succeed("train", *quick, "--data", data, "--target", data[-7:] if "train" in data else "y_test")

    def test_what_is_wrong(self):
        self.write("t.csv", b"a,b\n1,2\n3\n")
        self.fail_with(1, "t.csv: row 2, byte 8: 1 fields, the header has 2", "inspect", "t.csv")
        self.write("i.idx", idx((3, 2), range(5)))
        self.fail_with(1, ("i.idx:", "12 bytes", "3 x 2 = 6 bytes"), "inspect", "i.idx")
        self.write("x", b"hi")
        self.fail_with(1, ("\"x\"", "does not show the kind", "csv:FILE"), "inspect", "x")
        self.fail_with(1, ("\"y\"", "no such file"), "inspect", "y")
        self.fail_with(1, "no.csv", "inspect", "no.csv")
        self.fail_with(2, "FILE", "inspect")

    @only_in_the_release
    def test_memory_is_in_proportion_to_the_file(self):
        """Of no file, whatever it says or unpacks to, more than 64 MB and eight times its bytes."""
        zeros = bytes(256 << 20)

        def npz(name, content, times=1):
            with zipfile.ZipFile(self.folder / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
                for i in range(times):
                    z.writestr(f"a{i}.npy", content)
        self.write("line.txt", b"a" * (32 << 20) + b"\n" + b"b\n" * 255)
        npz("fortran.npz", npy("<f4", (1 << 19, 128), zeros, True))
        npz("one.npz", npy("<f4", (1, 1 << 26), zeros))
        npz("rows.npz", npy("<f4", (1 << 19, 128), zeros))
        self.write("one.idx.gz", gzip.compress(idx((1, 256 << 20), zeros), 1))
        self.write("rows.idx.gz", gzip.compress(idx((1 << 16, 1024), zeros[:64 << 20]), 1))
        self.write("long.txt.gz", gzip.compress(zeros, 1))
        self.write("row.csv.gz", gzip.compress(b'a,b\n1,"' + zeros.replace(b"\0", b"x"), 1))
        self.write("i1.npy", npy("|i1", (1, 8 << 20), bytes(8 << 20)))
        columns = 1000000
        self.write("wide.csv", ",".join(f"c{i}" for i in range(columns)).encode() + b"\n" + b"1," * columns)
        self.write("text.csv", b"a,b\n" + b"".join(b"%x,%x\n" % (i, i) for i in range(1 << 18)))
        del zeros
        measure = ("import os, subprocess, sys\n"
                   "p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
                   "print(os.wait4(p.pid, 0)[2].ru_maxrss)")
        for file in sorted(self.folder.iterdir()):
            done = subprocess.run([sys.executable, "-c", measure, COMMAND, "inspect", file], text=True,
                                  stdout=subprocess.PIPE, timeout=250, check=True)
            self.assertLess(int(done.stdout) * 1024, (64 << 20) + 8 * file.stat().st_size, file.name)

    def test_names_command_no_terminal(self):
        header = json.dumps({"__metadata__": {"k\x1b[2J": "v\x9b1m é"},
                             "w\x07": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}},
                            ensure_ascii=False).encode()
        self.write("w.safetensors", struct.pack("<Q", len(header)) + header)
        text = self.succeed("inspect", "w.safetensors")
        self.assertIn("  k\\x1b[2J = v\\xc2\\x9b1m é\n", text)
        self.assertIn("  w\\x07 ", text)
        self.write("t.csv", b"a\x1b[2J,label\n1,x\x7f\n2,y\n")
        self.assertIn("a\\x1b[2J ", self.succeed("inspect", "t.csv"))
        self.assertIn("x\\x7f", self.succeed("inspect", "t.csv"))

    def test_no_text_of_a_file_commands_a_terminal(self):
        """Controls of C0 and C1, raw and as characters, bytes that are no UTF-8, and marks that turn
        around what stands beside them, in what is said, in errors and in JSON."""
        bad = [b"\x1b[2J", b"\x07", b"\x7f", b"\x9b1m", b"\x85", "\x9b".encode(), b"\xc0\xaf",
               b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"]
        bad += [chr(c).encode() for c in (0x61c, 0x200e, 0x200f, *range(0x202a, 0x202f),
                                          *range(0x2066, 0x206a))]
        for text in bad:
            self.write("rows.txt", b"a" + text + b"b\n" + b"c" * 59 + text)
            self.write("t.csv", b"n" + text + b",label\n1,k" + text + b"\n2,y\n")
            self.write("wrong.csv", b"n" + text + b",label\n1,k\n2," + text + b"\n3\n")
            with zipfile.ZipFile(self.folder / "z.npz", "w") as z:
                z.writestr(zipfile.ZipInfo("m" + text.decode("utf-8", "replace") + ".npy"), b"no array")
            for arguments in (("lines:rows.txt",), ("t.csv",), ("wrong.csv",), ("z.npz",),
                              ("t.csv", "--json")):
                done = self.start("inspect", *arguments, text=False)
                said = (done.stdout + done.stderr).decode("utf-8")
                for c in said.replace("\n", ""):
                    self.assertTrue(c.isprintable() and unicodedata.bidirectional(c) not in
                                    ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
                                    (arguments, text, said))
            if text == text.decode("utf-8", "ignore").encode():
                (event,) = self.events("inspect", "t.csv")
                self.assertEqual(event["columns"][0]["name"], "n" + text.decode())

    def test_json_is_utf_8_whatever_a_file_is_called(self):
        for name in (b"\xed\xa0\x80.txt", b"\xf5\x80\x80\x80.txt", b"\xe0\x80\x80.txt", b"\xff.txt"):
            (self.folder / os.fsdecode(name)).write_bytes(b"a\n")
            (event,) = self.events("inspect", "lines:" + os.fsdecode(name))
            self.assertEqual(event["file"], "\ufffd" * (len(name) - 4) + ".txt")

    def test_weights(self):
        data = struct.pack("<3f", 1, float("inf"), float("nan")) + bytes(2)
        header = json.dumps({"__metadata__": {"made by": "a test"},
                             "w": {"dtype": "F32", "shape": [3, 1], "data_offsets": [0, 12]},
                             "odd": {"dtype": "U16", "shape": [1], "data_offsets": [12, 14]}}).encode()
        whole = struct.pack("<Q", len(header)) + header + data
        first = 8 + len(header)
        self.write("w.safetensors", whole)
        text = self.succeed("inspect", "w.safetensors")
        self.assertEqual(text.splitlines()[:2], ["w.safetensors: safetensors, 2 tensors, 4 elements, 14 bytes",
                                                 "  made by = a test"])
        self.assertRegex(text, rf"odd +U16 +\[1\] +2 bytes from {first + 12}\n")
        self.assertRegex(text, rf"w +F32 +\[3, 1\] +12 bytes from {first}; 2 not finite, the first at "
                               rf"byte {first + 4}\n")
        self.write("other", whole)
        (event,) = self.events("inspect", "safetensors:other")
        self.assertEqual((event["kind"], event["metadata"]), ("safetensors", {"made by": "a test"}))
        self.assertEqual(event["tensors"], [
            {"name": "odd", "dtype": "U16", "shape": [1], "first": first + 12, "bytes": 2},
            {"name": "w", "dtype": "F32", "shape": [3, 1], "first": first, "bytes": 12, "nonfinite": 2,
             "first_nonfinite": first + 4}])

    def test_damaged_weights(self):
        def packed(header, data):
            return struct.pack("<Q", len(header)) + header + data
        for header, data, text in (
                (b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}', b"ab", "byte 60: "),
                (b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}', b"abc",
                 'byte 62: tensor "a": there is a gap before it'),
                (b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}}', b"abc",
                 'byte 60: tensor "a": its offsets do not fit its shape'),
                (b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}', b"a",
                 "its header declares 2 bytes of data, it has 1")):
            self.write("w.safetensors", packed(header, data))
            self.fail_with(1, text, "inspect", "w.safetensors")
        self.fail_with(1, "no.safetensors", "inspect", "no.safetensors")

    def test_input_is_measured(self):
        self.write("i.idx", idx((300, 2), bytes(600)))
        (event,) = self.events("bench", "input", "--source", "i.idx", "--passes", "2")
        self.assertEqual(event["examples"], 300)
        self.assertGreater(event["bytes_per_s"], 0)
        self.assertIn("idx:i.idx, read: 300 examples", self.succeed("bench", "input", "--source", "idx:i.idx"))
        for pipeline, examples in (("map", 300), ("window", 300 // 16), ("interleave", 600),
                                   ("zip", 300)):
            (event,) = self.events("bench", "input", "--source", "i.idx", "--passes", "1", "--pipeline", pipeline)
            self.assertEqual((event["pipeline"], event["examples"]), (pipeline, examples))
        self.write("x.csv", b"x,y\n1,2\n3,4\n")
        self.fail_with(1, ("--pipeline zip: ", '"csv:x.csv"'), "bench", "input", "--source", "csv:x.csv",
                       "--pipeline", "zip")
        self.fail_with(2, "--source FILE", "bench", "input")
        self.fail_with(1, "no.idx", "bench", "input", "--source", "no.idx")


main()
