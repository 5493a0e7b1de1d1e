"""NVIDIA DALI's CPU pipeline over class folders: a random crop that is decoded alone, resized, flipped, normalised."""

import resource

import image_rounds
from nvidia.dali import fn, pipeline_def, types


@pipeline_def
def pipeline(folder, size):
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True)
    images = fn.decoders.image_random_crop(files, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=(size, size))  # bilinear with antialias
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * each for each in image_rounds.MEAN],
        std=[255 * each for each in image_rounds.STD],
        mirror=fn.random.coin_flip(),
    )
    return images, labels


def main():
    options = image_rounds.arguments(__doc__)
    made = pipeline(
        options.folder, options.size, batch_size=options.batch_size, num_threads=options.threads, device_id=None, seed=1
    )
    made.build()

    def take():
        images, _ = made.run()
        assert images.as_tensor().shape() == [options.batch_size, 3, options.size, options.size]
        return options.batch_size

    def cpu_seconds():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    image_rounds.report(take, cpu_seconds, options.seconds)


main()
