#!/usr/bin/env python3
"""Records numpy_protocolN.pkl: what numpy (2.4 here) pickles of arrays and scalars at each protocol that torch.save may be
told to write. Usage: record_numpy.py"""
import pickle
from pathlib import Path

import numpy

VALUES = {
    'matrix': numpy.arange(6, dtype='f4').reshape(2, 3),
    'fortran': numpy.asfortranarray(numpy.arange(6, dtype='i2').reshape(2, 3)),
    'empty': numpy.zeros((0, 3)),
    'zero_dim': numpy.array(200, dtype='u1'),
    'scalars': [numpy.float64(0.5), numpy.float32(-2), numpy.float16(1.5), numpy.int64(-3), numpy.uint16(65535),
                numpy.bool_(True)],
    'dtype': numpy.dtype('f4'),
    'more': [numpy.array(['a'], dtype=object), numpy.arange(2, dtype='>f4'), numpy.str_('a')],
}

if __name__ == '__main__':
    here = Path(__file__).resolve().parent
    for protocol in range(2, 6):
        (here / f'numpy_protocol{protocol}.pkl').write_bytes(pickle.dumps(VALUES, protocol))
