"""The commands in the documentation: every subcommand and option of choir exists, and the fragments that need
one machine and small files run as they are written."""

import os
import pathlib
import re
import shlex
import subprocess

from command import COMMAND, SOURCE, Case, main, only_in_the_release

ROOT = pathlib.Path(SOURCE)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]


def fragments(page):
    """The shell fragments of a page."""
    return re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


def command_lines(page):
    """The command lines of a page: lines of its shell fragments, and code within sentences."""
    text = page.read_text(encoding="utf-8")
    for fragment in fragments(page):
        yield from fragment.replace("\\\n", " ").splitlines()
    yield from re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def uses(line):
    """The subcommand and the options of each choir in a command line."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError: # a part of a command
        return
    begins = [i for i, word in enumerate(words) if word == "choir" or word.endswith("/choir")]
    for i, end in zip(begins, begins[1:] + [len(words)]):
        own = words[i + 1:end]
        own = own[:min([own.index(word) for word in ("--", "|", "&", ";", ">") if word in own] + [len(own)])]
        names = [word for word in own[:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
        if own and names[:1] == own[:1]:
            yield " ".join(names[:2] if names[0] == "bench" else names[:1]), [w for w in own if w.startswith("--")]


def penguins(folder):
    rows = [f"{'Adelie' if i % 2 else 'Gentoo'},{35 + i % 7 + i % 2 * 9},{14 + i % 5},{180 + i % 9},{3500 + i}\n" for i in range(100)]
    (folder / "penguins.csv").write_text("species,bill,depth,flipper,mass\n" + "".join(rows))


def sales(folder):
    rows = [f"{i % 7},{i % 9};{'?' if i % 20 == 4 else i % 5};{'yn'[i % 7 > 3]}\n" for i in range(200)]
    (folder / "sales.csv").write_text("price;size;sold\n" + "".join(rows))
    (folder / "new.csv").write_text("size;price\n1;2,5\n")


def plays(folder):
    (folder / "plays.txt").write_text("ROMEO:\nBut soft, what light through yonder window breaks?\n" * 40)


def built(folder):
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(os.path.dirname(COMMAND))


# The first words of fragments that run as they are written, and what makes their files.
RUN = {
    "for devices in": built,
    "choir train --data csv:penguins.csv": penguins,
    "choir inspect sales.csv": sales,
    "choir train --model gpt": plays,
    "choir train --model mlp --data digits:1000": None,
}


class Commands(Case):
    def test_every_option_exists(self):
        known, found = {}, 0
        for page in PAGES:
            for command, options in (use for line in command_lines(page) for use in uses(line)):
                if command not in known:
                    known[command] = self.succeed(*command.split(), "--help")
                for option in options:
                    known_one = re.search(rf"{re.escape(option.split('=')[0])}\b(?!-)", known[command])
                    self.assertTrue(known_one, f"{page.name}: choir {command} has no {option}")
                    found += 1
        self.assertGreater(found, 50)

    @only_in_the_release
    def test_fragments_run(self):
        shell = {"PATH": f"{os.path.dirname(COMMAND)}:{os.environ['PATH']}", "HOME": str(self.folder)}
        every = [fragment for page in PAGES for fragment in fragments(page)]
        for words, prepare in RUN.items():
            chosen = [fragment for fragment in every if fragment.startswith(words)]
            self.assertEqual(len(chosen), 1, words)
            if prepare:
                prepare(self.folder)
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", chosen[0]], cwd=self.folder, env=shell, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=250, check=False)
            self.assertEqual(done.returncode, 0, f"{chosen[0]}{done.stdout}{done.stderr}")
            if words == "for devices in": # the page says so
                self.assertEqual(len(set(done.stdout.splitlines())), 1, done.stdout)
                self.assertEqual(len(done.stdout.splitlines()), 3, done.stdout)


main()
