// Operations on the colours of an image, in integers: the same bits on every machine. Each changes `pixels` in place.
#pragma once

#include <cstdint>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

// Factors of the enhancements below: 1 leaves the image as it is, 0 goes all the way to black, to the mean grey level,
// to grey, or to a blurred image; above 1 it goes away from it. Rounded to 2^-15; at most 16. Levels are
// rounded to the nearest one, where Pillow and torchvision cut off.
void change_brightness(Pixels& pixels, double factor);
void change_contrast(Pixels& pixels, double factor);
void change_saturation(Pixels& pixels, double factor);               // grey images stay as they are
void change_sharpness(Pixels& pixels, double factor, Pixels& copy);  // `copy` is memory for it

void turn_hue(Pixels& pixels, double turns);  // -0.5 to 0.5 of the circle of colours; grey images stay as they are

void posterize(Pixels& pixels, int bits);  // keeps the upper 0 to 8 bits
void solarize(Pixels& pixels, int from);   // inverts levels from this one on
void autocontrast(Pixels& pixels);         // stretches each channel over all levels
void equalize(Pixels& pixels);             // makes all levels of a channel as frequent, as Pillow does

}  // namespace lockstep::image
