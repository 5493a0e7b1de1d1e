#!/usr/bin/env python3
"""Writes the C++ code of the docs as one source file, each block a function that sees the names of context.h. Of the
pages that check.py compares with examples it takes blocks of ```c++, and check.py those of ```cpp.
Usage: blocks.py ROOT OUT.cc"""
import re
import sys
from pathlib import Path

root, out = Path(sys.argv[1]), Path(sys.argv[2])
COMPARED = {'own-model.md', 'collectives.md'}
includes, functions = ['#include "context.h"'], []
# Names of a page may be those of the context, and results stay unused.
pragmas = ''.join(f'#pragma GCC diagnostic ignored "-W{each}"\n' for each in ('shadow', 'unused-variable'))
for page in [root / 'README.md', *sorted((root / 'docs').rglob('*.md'))]:
    text = page.read_text()
    for block in re.finditer(r'```c\+\+\n(.*?)```' if page.name in COMPARED else r'```(?:cpp|c\+\+)\n(.*?)```', text, re.S):
        line = text.count('\n', 0, block.start(1)) + 1
        includes += re.findall(r'^#include .*$', block[1], re.M)
        body = re.sub(r'^#include .*$', '', block[1], flags=re.M)
        functions.append(f'[[maybe_unused]] void block_{len(functions)}() {{\n#line {line} "{page.relative_to(root)}"\n{body}}}\n')
if not functions:
    sys.exit('no code in the docs')
out.write_text('\n'.join(dict.fromkeys(includes)) + '\n' + pragmas + 'namespace docs {\n' + '\n'.join(functions) + '}  // namespace docs\n')
