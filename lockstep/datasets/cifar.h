// CIFAR-10 and CIFAR-100 in their binary version.
#pragma once

#include <memory>
#include <string>

#include "lockstep/datasets/image_source.h"
#include "lockstep/image/normalize.h"

namespace lockstep::datasets {

enum class Cifar { k10, k100 };
enum class CifarPart { kTrain, kTest };

constexpr image::Size kCifarSize{32, 32};

// Opens data_batch_1.bin to data_batch_5.bin, or test_batch.bin, of CIFAR-10; train.bin or test.bin of CIFAR-100, with
// its 100 fine classes. Classes have the names of batches.meta.txt or fine_label_names.txt if that is there. Reads all
// files once, for their classes and fingerprint; images stay on disk. Throws DataError that names a file that is
// missing or no CIFAR's.
std::shared_ptr<const ImageSource> cifar(const std::string& path, Cifar kind, CifarPart part);

// The mean and standard deviation of the training images.
image::Normalize cifar_normalize(Cifar kind);

}  // namespace lockstep::datasets
