// Nothing: this file exists so that precompiled.h belongs to a target.
