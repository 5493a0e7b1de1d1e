"""Computes what Lockstep exported, in ONNX Runtime or, of a .ts file, in PyTorch, and compares it with Lockstep's outputs.
Usage: onnx_files.py BATCHES EXPORTED…    (BATCHES is a .pt of a list of dicts with inputs, a list, and output)"""
import sys

import torch



def torch_script(exported):
    module = torch.jit.load(exported)

    def compute(inputs):
        with torch.no_grad():
            return module(*inputs)

    return compute


def onnx_runtime(exported):
    import onnx
    import onnxruntime

    onnx.checker.check_model(exported, full_check=True)
    session = onnxruntime.InferenceSession(exported, providers=['CPUExecutionProvider'])
    names = [each.name for each in session.get_inputs()]
    assert [each.name for each in session.get_outputs()] == ['output'], session.get_outputs()

    def compute(inputs):
        found = session.run(None, {name: each.numpy() for name, each in zip(names, inputs, strict=True)})[0]
        return torch.from_numpy(found)

    return compute


batches = torch.load(sys.argv[1], weights_only=True)
for exported in sys.argv[2:]:
    compute = torch_script(exported) if exported.endswith('.ts') else onnx_runtime(exported)
    for batch in batches:
        found, wanted = compute(batch['inputs']), batch['output']
        if found.shape != wanted.shape:
            sys.exit(f'{exported}: the shape is {tuple(found.shape)}, not {tuple(wanted.shape)}')
        apart, largest = (found - wanted).abs().max().item(), wanted.abs().max().item()
        print(f'{exported}: {tuple(wanted.shape)} differ by {apart:.1e} where the largest is {largest:.1e}')
        if not apart < 1e-4 * max(1, largest):
            sys.exit(f'{exported}: outputs differ by {apart}')
