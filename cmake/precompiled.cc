// Nothing: this file exists so that each precompiled header belongs to a target.
