// The commands of the front: each finds the files and folders that it needs, then launches.
#pragma once

#include <string>
#include <vector>

namespace lockstep::front {

using Arguments = std::vector<std::string>;

// Runs the command line `words`, without the program's name, and returns the exit code. Throws lockstep::Error.
int run(const Arguments& words);

int train(const Arguments& args);
int eval(const Arguments& args);
int predict(const Arguments& args);
int export_network(const Arguments& args);
int bench(const Arguments& args);
int inspect(const Arguments& args);
int verify(const Arguments& args);
int diff(const Arguments& args);
int convert(const Arguments& args);
int draw(const Arguments& args);
int pack(const Arguments& args);
int data(const Arguments& args);
int launch(const Arguments& args);
int doctor(const Arguments& args);
int ps(const Arguments& args);
int logs(const Arguments& args);
int dash(const Arguments& args);
int stop(const Arguments& args);

// Returns the path of lockstep-worker, beside this program. In a bundle it finds libtorch first, and this process's
// environment is then that of the worker. Throws IoError if the worker is not there; as bundle::find_libtorch().
std::string worker_program();

// Writes to standard output at once, whole. Throws IoError.
void print(const std::string& text);

// `bench startup`: starts training a few times and prints the time to the end of the first step.
int bench_startup(int nproc, bool json);

}  // namespace lockstep::front
