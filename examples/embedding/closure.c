/* A host program in C: a row of ocean columns, mixed by a trained closure at every step.
 * Temperatures lie as the host keeps them, one array a level: T[level][column]; the net reads the 32 levels of every
 * column and writes 31 interface fluxes, in place. What leaves one cell enters the next: heat is conserved.
 * usage: closure MODEL */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"

enum { kColumns = 1000, kLevels = 32, kSteps = 20 };

static float temperature[kLevels][kColumns];
static float flux[kLevels - 1][kColumns];

static void fail(const char *what) {
  fprintf(stderr, "closure: %s: %s\n", what, lockstep_last_error());
  exit(1);
}

static double heat(void) {
  double sum = 0;
  for (int k = 0; k < kLevels; ++k)
    for (int c = 0; c < kColumns; ++c) sum += temperature[k][c];
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: closure MODEL\n");
    return 2;
  }
  lockstep_model *model = NULL;
  lockstep_plan *plan = NULL;
  if (lockstep_model_load(argv[1], NULL, &model)) fail("loading the closure");
  if (lockstep_compile(model, NULL, &plan)) fail("compiling the closure");
  lockstep_model_free(model);
  printf("%s\n", lockstep_plan_description(plan));

  for (int k = 0; k < kLevels; ++k) {
    const float height = 1.0f - (float)k / kLevels;
    for (int c = 0; c < kColumns; ++c) temperature[k][c] = height * height + (float)(c % 17) * 0.0625f;
  }
  const double before = heat();
  for (int step = 0; step < kSteps; ++step) {
    if (lockstep_evaluate_f32(plan, kColumns, temperature[0], 1, kColumns, flux[0], 1, kColumns, NULL, 0))
      fail("evaluating the closure");
    for (int k = 0; k < kLevels - 1; ++k) {
      for (int c = 0; c < kColumns; ++c) {
        const float moved = 0.0078125f * flux[k][c];
        temperature[k][c] -= moved;
        temperature[k + 1][c] += moved;
      }
    }
  }
  lockstep_plan_free(plan);

  uint64_t checksum = 0;
  for (int k = 0; k < kLevels; ++k) {
    for (int c = 0; c < kColumns; ++c) {
      uint32_t bits;
      memcpy(&bits, &temperature[k][c], sizeof bits);
      checksum += (uint64_t)bits * (uint64_t)(c % 251 + 1);
    }
  }
  printf("%d columns, %d steps: heat changed by %.1e of itself\n", kColumns, kSteps, fabs(heat() - before) / before);
  printf("checksum %" PRIu64 "\n", checksum);
  return 0;
}
