#!/usr/bin/env python3
"""Compares docs/compat.md with the headers: each row's header is there and declares the names beside it, a row without
one says why, and every header under lockstep/compat has a row. Usage: compat.py SOURCE_DIR"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
tree = root / 'lockstep'
wrong, shown = [], set()


def code_of(header):
    """Without comments and includes."""
    text = re.sub(r'/\*.*?\*/', '', header.read_text(), flags=re.S)
    return re.sub(r'//[^\n]*|^\s*#\s*include[^\n]*', '', text, flags=re.M)


def check(theirs, ours, header, note):
    """A row's cells: nothing, or what is wrong."""
    if header == '–':
        return '' if ours == '–' and note else 'has neither a header nor a reason'
    path = tree / header.strip('`')
    if not path.is_file():
        return f'lockstep/{header.strip("`")} is not there'
    shown.add(path)
    names = re.findall(r'`([\w:]+)`', ours)
    code = code_of(path)
    gone = [name for name in names if not re.search(rf'\b{name.split("::")[-1]}\b', code)]
    if gone or not names:
        return f'lockstep/{header.strip("`")} does not declare {", ".join(gone) or "a name"}'
    return ''


rows = 0
for line in (root / 'docs/compat.md').read_text().splitlines():
    cells = [cell.strip() for cell in line.strip('|').split('|')]
    if not line.startswith('|') or cells[1:3] == ['here', 'header'] or set(line) <= set('|-'):
        continue
    rows += 1
    mistake = check(*cells) if len(cells) == 4 else f'has {len(cells)} cells'
    if mistake:
        wrong.append(f'docs/compat.md: {cells[0]}: {mistake}')
for header in sorted((tree / 'compat').rglob('*.h')):
    if header not in shown:
        wrong.append(f'docs/compat.md: no row for {header.relative_to(root)}')
if rows == 0:
    wrong.append('docs/compat.md: no tables')

print('\n'.join(wrong) or f'{rows} rows, as the headers have them')
sys.exit(bool(wrong))
