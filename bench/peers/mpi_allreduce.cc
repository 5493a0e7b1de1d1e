// MPI's own all-reduce: the sum of N bytes of floats, in place. bench/run builds it with mpicxx and starts it by mpirun.
// Arguments: the sizes in bytes. Rank 0 prints one line of JSON: [{"backend", "ranks", "bytes", "seconds" (median)}, …].
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Seconds of one call among `batch` without a barrier between them.
static double round_seconds(std::vector<float>& data, int batch) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < batch; ++i) {
    MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / batch;
}

// As `lockstep bench allreduce` measures: rounds of a barrier and some 20 us of calls; of each the slowest rank counts.
static double median_seconds(long bytes) {
  constexpr double kSeconds = 2, kBatchSeconds = 2e-5;
  std::vector<float> data(static_cast<size_t>(bytes / 4), 0.0f);
  double probe = 1;
  for (int i = 0; i < 5; ++i) probe = std::min(probe, round_seconds(data, 1));
  int counts[2] = {static_cast<int>(std::clamp(kBatchSeconds / probe, 1.0, 100.0)), 0};
  counts[1] = static_cast<int>(std::clamp(kSeconds / (probe * counts[0]), 10.0, 5000.0));
  MPI_Bcast(counts, 2, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<double> times;
  for (int i = 0; i < counts[1]; ++i) times.push_back(round_seconds(data, counts[0]));
  MPI_Allreduce(MPI_IN_PLACE, times.data(), counts[1], MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int k = 1; k < argc; ++k) {
    const long bytes = std::atol(argv[k]);
    const double seconds = median_seconds(bytes);
    if (rank == 0) {
      std::printf("%s{\"backend\": \"openmpi\", \"ranks\": %d, \"bytes\": %ld, \"seconds\": %.9f}", k == 1 ? "[" : ", ",
                  ranks, bytes, seconds);
    }
  }
  if (rank == 0) std::printf("]\n");
  MPI_Finalize();
}
