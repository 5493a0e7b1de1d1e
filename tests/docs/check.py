#!/usr/bin/env python3
"""What the docs show is what the repository has: the README's diff, and the code of docs/own-model.md and collectives.md,
against the examples; commands and options against the programs' help; the cost model's table; and every relative link.
Usage: check.py SOURCE_DIR LOCKSTEP"""
import re
import subprocess
import sys
from pathlib import Path

root, lockstep = Path(sys.argv[1]), sys.argv[2]
readme = (root / 'README.md').read_text()
wrong = []

sides = {'+': root / 'examples/data_parallel.cc', '-': root / 'examples/single_process.cc'}
lines = {sign: set(path.read_text().splitlines()) for sign, path in sides.items()}
shown = 0
for block in re.findall(r'```diff\n(.*?)```', readme, re.S):
    for line in block.splitlines():
        if line.strip() in ('', '…'):
            continue
        for sign in ('+', '-') if line[0] == ' ' else (line[0],):
            shown += 1
            if ' ' + line[1:] not in {' ' + each for each in lines[sign]}:
                wrong.append(f'README.md: the diff shows a line that {sides[sign].name} has not: {line}')
if shown == 0:
    wrong.append('README.md: no diff')

examples = {line.strip() for path in (root / 'examples').glob('*.cc') for line in path.read_text().splitlines()}
outside = (root / 'tests/install/outside/CMakeLists.txt').read_text()
for block in re.findall(r'```cmake\n(.*?)```', (root / 'docs/own-model.md').read_text(), re.S):
    if block not in outside:
        wrong.append('docs/own-model.md: tests/install/outside/CMakeLists.txt has other lines')
for page in ('own-model.md', 'collectives.md'):
    for block in re.findall(r'```cpp\n(.*?)```', (root / 'docs' / page).read_text(), re.S):
        for line in block.splitlines():
            if line.strip() and line.strip() not in examples:
                wrong.append(f'docs/{page}: no example has the line {line}')

help_of = lambda *words: subprocess.run([lockstep, *words, '--help'], capture_output=True, text=True).stdout
data_page = (root / 'docs/data.md').read_text()
loaders_page = (root / 'docs/loaders.md').read_text()
runs_page = (root / 'docs/runs.md').read_text()
pages = (('README.md', readme), ('docs/data.md', data_page), ('docs/loaders.md', loaders_page), ('docs/runs.md', runs_page),
         ('docs/recipes.md', (root / 'docs/recipes.md').read_text()))
for command in ('train', 'data', 'pack', 'inspect', 'verify', 'diff'):
    known = {'--help', *re.findall(r'--[a-z-]+', help_of(command))}
    for page, text in pages:
        for line in re.findall(rf'lockstep {command} ([^`\n]*)', text):
            for option in re.findall(r'--[a-z-]+', line):
                if option not in known:
                    wrong.append(f'{page}: lockstep {command} has no {option}')
# Its tables of options: those of training, and those of packing.
for head, words in (('option', ('train', 'imagenet')), ("pack's option", ('pack',))):
    table = re.search(rf'^\| {head} \|.*\n((?:\|.*\n)+)', data_page, re.M).group(1)
    known = help_of(*words)
    for option, word in re.findall(r'^\| `(--[a-z-]+)(?: (\w+))?`', table, re.M):
        if option not in re.findall(r'--[a-z-]+', known) or word.islower() and word not in known:
            wrong.append(f"docs/data.md: lockstep {' '.join(words)} has no {option} {word}")

model = subprocess.run([sys.executable, root / 'bench/cost_model.py'], capture_output=True, text=True).stdout
collectives = (root / 'docs/collectives.md').read_text()
for row in model.splitlines()[3:]:  # after the heads and the one node of 8
    ranks, *cells = row.split()
    line = '| ' + ' | '.join([f'{int(ranks):,}', *cells]) + ' |'
    if line not in collectives:
        wrong.append(f'docs/collectives.md: bench/cost_model.py says {line}')

# The reading guide's rooms are the modules; its tables name files by their path under lockstep/, or beside the one before.
guide = (root / 'docs/reading-guide.md').read_text()
rooms = {name: uses.replace('–', '').replace(',', '').split()
         for name, uses in re.findall(r'^\| `([\w/]+)` \|[^|]*\| ([\w/, –]+) \|$', guide, re.M)}
modules = {}
for file in (root / 'lockstep').rglob('CMakeLists.txt'):
    for name, row in re.findall(r'lockstep_module\(([\w/]+)([^)]*)\)', file.read_text()):
        modules[name] = ([] if ' USES ' not in row else
                         re.split(r' (?:LINKS|PRIVATE_LINKS|TEST_USES|TEST_LINKS)\b', ' '.join(row.split()).split('USES ', 1)[1])[0].split())
for name in sorted(rooms.keys() | modules.keys()):
    if rooms.get(name) != modules.get(name):
        wrong.append(f'docs/reading-guide.md: {name} may use {rooms.get(name)}; its CMakeLists.txt says {modules.get(name)}')
for line in guide.splitlines():
    folder = root / 'lockstep'
    for name in re.findall(r'`([\w./-]+\.(?:h|cc|md))`', line) if line.startswith('|') else []:
        found = [path for path in (root / 'lockstep' / name, root / name, folder / name, folder.parent / name) if path.exists()]
        if not found:
            wrong.append(f'docs/reading-guide.md: {name} is not there: {line[:80]}')
        folder = found[0].parent if found else folder

prose = lambda text: re.sub(r'```.*?```', '', text, flags=re.S)
for page in [root / 'README.md', *(root / 'docs').rglob('*.md')]:
    for link in re.findall(r'\]\(([^)#]+)', prose(page.read_text())):
        if '://' not in link and not (page.parent / link).exists():
            wrong.append(f'{page.relative_to(root)}: {link} is not there')

print('\n'.join(wrong) or 'the docs show what is there')
sys.exit(bool(wrong))
