/* What a plan's first evaluation costs over its second: medians over fresh processes, from C.
 * Before either the host does something else and writes its inputs, as hosts do between two calls: a processor's wide
 * units and its caches are then no more ready for the second than for the first. A third follows at once.
 * usage: first_evaluation PLAN SAMPLES; prints a JSON line */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lockstep.h"

enum { kProcesses = 21, kWidest = 1024 };
struct measured {
  double load, first, second, at_once, faults;
};

static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static double faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_minflt;
}

/* Of the host's own work, without vectors. */
static void pause_for(double nanoseconds_of_it) {
  const double start = nanoseconds();
  while (nanoseconds() - start < nanoseconds_of_it) {
  }
}

static int measure(const char* path, size_t samples, struct measured* result) {
  lockstep_plan* plan = NULL;
  double start, before;
  float *const in = malloc(samples * kWidest * sizeof(float)), *const out = malloc(samples * kWidest * sizeof(float));
  memset(in, 0, samples * kWidest * sizeof(float));
  memset(out, 0, samples * kWidest * sizeof(float));
  for (int i = 0; i < 20; ++i) start = nanoseconds() + faults();
  start = nanoseconds();
  if (lockstep_plan_load(path, &plan)) {
    fprintf(stderr, "%s\n", lockstep_last_error());
    return 1;
  }
  result->load = nanoseconds() - start;
  const ptrdiff_t inputs = (ptrdiff_t)lockstep_plan_inputs(plan), outputs = (ptrdiff_t)lockstep_plan_outputs(plan);
  if (inputs > kWidest || outputs > kWidest) return 1;
  before = faults();
  for (int i = 0; i < 3; ++i) {
    double* const times[] = {&result->first, &result->second, &result->at_once};
    if (i < 2) {
      pause_for(1e5);
      for (size_t k = 0; k < samples * (size_t)inputs; ++k) in[k] = 0.5F;
      memset(out, 0, samples * (size_t)outputs * sizeof(float));
    }
    start = nanoseconds();
    if (lockstep_evaluate_f32(plan, samples, in, inputs, 1, out, outputs, 1, NULL, 0)) return 1;
    *times[i] = nanoseconds() - start;
    if (i == 0) result->faults = faults() - before;
  }
  return 0;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, kProcesses, sizeof *values, ascending);
  return values[kProcesses / 2];
}

int main(int argc, char** argv) {
  double first[kProcesses], second[kProcesses], at_once[kProcesses], load[kProcesses], met[kProcesses];
  if (argc != 3) return 2;
  for (int i = 0; i < kProcesses; ++i) {
    struct measured one;
    int ends[2], status = 1;
    if (pipe(ends)) return 1;
    const pid_t child = fork();
    if (child == 0) {
      if (measure(argv[1], strtoul(argv[2], NULL, 10), &one)) _exit(1);
      _exit(write(ends[1], &one, sizeof one) != (ssize_t)sizeof one);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    if (read(ends[0], &one, sizeof one) != (ssize_t)sizeof one) return 1;
    close(ends[0]);
    close(ends[1]);
    first[i] = one.first;
    second[i] = one.second;
    at_once[i] = one.at_once;
    load[i] = one.load;
    met[i] = one.faults;
  }
  printf("{\"samples\": %s, \"load_us\": %.0f, \"first_ns\": %.0f, \"second_ns\": %.0f, \"at_once_ns\": %.0f, ",
         argv[2], median(load) / 1e3, median(first), median(second), median(at_once));
  printf("\"page_faults\": %.0f}\n", median(met));
  return 0;
}
