"""What the README's first screen shows: steps, start-up and memory beside PyTorch's DistributedDataParallel and torchrun, the
all-reduce beside Gloo's, images beside DALI's and torchvision's. Composed of the other benches, as a table in Markdown.
"""

NAME = "readme"
WHAT = "the table of the README's first screen, of the cases, allreduce and data"
CASES = {  # by name: the words of the first column, and whose the other figure is
    "mobilenet-fp32": ("a step of MobileNetV2, 112 pixels, 16 images a process", "DistributedDataParallel"),
    "resnet18-fp32": ("a step of ResNet-18, 112 pixels, 16 images a process", "DistributedDataParallel"),
    "unet-fp32": ("a step of U-Net, 96 pixels, 2 images a process", "DistributedDataParallel"),
    "lenet64-fp32": ("a step of LeNet, 64 digits a process", "DistributedDataParallel"),
    "startup": ("from the command to the end of the first step", "torchrun"),
    "memory": ("memory of a process after 100 steps of LeNet", "DistributedDataParallel"),
}
SIZES = {1 << 10: "1 KB", 1 << 20: "1 MB", 100 << 20: "100 MB"}
PEERS = {"dali": "DALI", "torchvision": "torchvision's DataLoader"}


def digits(value):
    """Three significant digits, and no exponent."""
    whole = f"{value:.0f}"
    return whole if len(whole) > 2 else f"{value:.{3 - len(whole)}f}" if value >= 1 else f"{value:.2f}"


def of_case(row):
    what, whose = CASES[row["name"]]
    unit = row["unit"]
    return what, f"{digits(row['ours'])} {unit}", f"{whose}: {digits(row['peer'])} {unit}", row["ratio"]


def of_allreduce(row):
    unit, scale = ("ms", 1e3) if row["bytes"] > 1 << 20 else ("us", 1e6)
    ours, gloo = (f"{digits(row[name] * scale)} {unit}" for name in ("ours", "gloo"))
    return f"an all-reduce of {SIZES[row['bytes']]}", ours, f"Gloo: {gloo}", row["ratios"]["gloo"]


def of_images(rows):
    found = {row["program"]: row for row in rows}
    for peer, name in PEERS.items():
        ratio = found["ours"]["ratios"][peer]["images_per_second"]
        ours, theirs = (digits(found[each]["images_per_second"]) for each in ("ours", peer))
        yield "photographs into batches of 224 pixels", f"{ours} a second", f"{name}: {theirs} a second", ratio


def table(cases, collectives, images, where, rounds):
    """In Markdown. The last column says how many times as good ours is."""
    every = [*map(of_case, cases), *map(of_allreduce, collectives), *of_images(images)]
    lines = ["| 2 processes of 1 thread, fp32 | Lockstep | beside it | times as good |", "|---|---|---|---|"]
    lines += [f"| {what} | {ours} | {theirs} | {ratio:.1f} |" for what, ours, theirs, ratio in every]
    times = "one round" if rounds == 1 else f"medians of {rounds} rounds"
    load = " which other work shared" if where["load"] > 0.5 else " with nothing else at work"
    lines += ["", f"`./run bench readme`: {times}, on {where['cores']} cores of {where['cpu']},{load}."]
    return "\n".join(lines)
