"""Prints, as JSON, what TensorBoard's own loader reads in a folder of event files. Usage: tensorboard_files.py FOLDER

{"scalars": {tag: {step: value}}, "histograms": {tag: {step: [[left, right, count], …]}},
 "images": {tag: {step: [width, height, the PNG's width and height, its modes]}}, "text": {tag: {step: text}},
 "hparams": {"parameters": {name: value}, "metrics": [tag, …], "status": 1: success}}"""
import io
import json
import sys

from PIL import Image
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.plugins.hparams import metadata
from tensorboard.util import tensor_util


def image(values):
    width, height, png = values[:3]
    decoded = Image.open(io.BytesIO(png))
    decoded.load()
    return [int(width), int(height), *decoded.size, decoded.mode]


READERS = {
    'scalars': lambda values: values.item(),
    'histograms': lambda values: values.tolist(),
    'images': image,
    'text': lambda values: values[0].decode(),
}


def read_hparams(content):
    experiment, start, end = content['experiment'], content['session_start_info'], content.get('session_end_info')
    parameters = {name: getattr(value, value.WhichOneof('kind')) for name, value in
                  metadata.parse_session_start_info_plugin_data(start).hparams.items()}
    infos = metadata.parse_experiment_plugin_data(experiment)
    if {info.name for info in infos.hparam_infos} != set(parameters):
        sys.exit('the experiment has other hyperparameters than the run')
    return {'parameters': parameters, 'metrics': [info.name.tag for info in infos.metric_infos],
            'status': metadata.parse_session_end_info_plugin_data(end).status if end else None}


guidance = {plugin_event_accumulator.TENSORS: 0}  # all of them
run = plugin_event_accumulator.EventAccumulator(sys.argv[1], size_guidance=guidance, tensor_size_guidance={
    name: 0 for name in (*READERS, 'hparams')})
run.Reload()
found = {name: {} for name in READERS}
hparams = {}
for tag in run.Tags()['tensors']:
    plugin = run.SummaryMetadata(tag).plugin_data
    if plugin.plugin_name == 'hparams':
        hparams[tag.removeprefix('_hparams_/')] = plugin.content
        continue
    found[plugin.plugin_name][tag] = {
        event.step: READERS[plugin.plugin_name](tensor_util.make_ndarray(event.tensor_proto)) for event in run.Tensors(tag)}
found['hparams'] = read_hparams(hparams)
json.dump(found, sys.stdout)
