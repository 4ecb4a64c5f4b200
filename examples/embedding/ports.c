/* Any net inside a C program: asks the net for its ports, gives each an array of its own, evaluates them all at once,
 * then multiplies with the Jacobian and its transpose. Prints what every output port answers as a checksum of its bits.
 *   usage: ports MODEL */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"

enum { kSamples = 45, kMostPorts = 16 };

static void check(lockstep_status status) {
  if (status == LOCKSTEP_OK) return;
  fprintf(stderr, "%s\n", lockstep_last_error());
  exit(1);
}

/* Of feature k of sample s, counted over all input ports: around a point where QLKNN, with its ten inputs, is turbulent. */
static double value(size_t inputs, size_t k, size_t s) {
  static const double qlknn[10] = {12.0, 5.35, 3.06, 9.57, 5.74, 2.72, 0.75, 1.86, -2.26, 0.83};
  const double base = inputs == 10 ? qlknn[k] : (double)((k * 37 + 11) % 64) / 16 - 2;
  return base * (1 - (double)s / 256);
}

static long long checksum(long long sum, const double *numbers, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    sum = (sum * 1009 + (long long)(bits & 0xffffffffu) + 7 * (long long)(bits >> 32)) % 1000000007;
  }
  return sum;
}

int main(int argc, char **argv) {
  const lockstep_compile_options options = {sizeof options, LOCKSTEP_FLOAT64, NULL, 1};
  lockstep_input_f64 in[kMostPorts], along[kMostPorts], bars[kMostPorts];
  lockstep_output_f64 out[kMostPorts], dots[kMostPorts], back[kMostPorts];
  lockstep_port port;
  lockstep_model *model = NULL;
  lockstep_plan *plan = NULL;
  size_t inputs, outputs, in_ports, out_ports, i, k, s;
  double *x, *y, *y_dot, *x_bar;
  long long total = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: ports MODEL\n");
    return 2;
  }
  check(lockstep_model_load(argv[1], NULL, &model));
  check(lockstep_compile(model, &options, &plan));
  lockstep_model_free(model);
  inputs = lockstep_plan_inputs(plan);
  outputs = lockstep_plan_outputs(plan);
  in_ports = lockstep_plan_ports(plan, LOCKSTEP_INPUT);
  out_ports = lockstep_plan_ports(plan, LOCKSTEP_OUTPUT);
  if (in_ports > kMostPorts || out_ports > kMostPorts) return 3;
  x = (double *)malloc(kSamples * inputs * sizeof *x);
  x_bar = (double *)malloc(kSamples * inputs * sizeof *x);
  y = (double *)malloc(kSamples * outputs * sizeof *y);
  y_dot = (double *)malloc(kSamples * outputs * sizeof *y);
  if (!x || !x_bar || !y || !y_dot) return 4;
  /* Features of all ports lie one after another, all samples of one together: x[feature][sample]. */
  for (k = 0; k < inputs; ++k) {
    for (s = 0; s < kSamples; ++s) x[k * kSamples + s] = value(inputs, k, s);
  }
  for (i = 0; i < in_ports; ++i) {
    check(lockstep_plan_port(plan, LOCKSTEP_INPUT, i, &port));
    in[i].data = along[i].data = x + port.first_feature * kSamples;
    back[i].data = x_bar + port.first_feature * kSamples;
    in[i].sample_stride = along[i].sample_stride = back[i].sample_stride = 1;
    in[i].feature_stride = along[i].feature_stride = back[i].feature_stride = kSamples;
  }
  for (i = 0; i < out_ports; ++i) {
    check(lockstep_plan_port(plan, LOCKSTEP_OUTPUT, i, &port));
    out[i].data = y + port.first_feature * kSamples;
    bars[i].data = y + port.first_feature * kSamples;
    dots[i].data = y_dot + port.first_feature * kSamples;
    out[i].sample_stride = dots[i].sample_stride = bars[i].sample_stride = 1;
    out[i].feature_stride = dots[i].feature_stride = bars[i].feature_stride = kSamples;
  }
  check(lockstep_evaluate_ports_f64(plan, kSamples, in, in_ports, out, out_ports, NULL, 0));
  check(lockstep_jvp_ports_f64(plan, kSamples, in, along, NULL, dots, in_ports, out_ports, NULL, 0)); /* J x */
  check(lockstep_vjp_ports_f64(plan, kSamples, in, bars, NULL, back, in_ports, out_ports, NULL, 0));  /* J^T y */
  for (i = 0; i < out_ports; ++i) {
    check(lockstep_plan_port(plan, LOCKSTEP_OUTPUT, i, &port));
    printf("%s %d %lld\n", port.name, (int)port.features,
           checksum(0, y + port.first_feature * kSamples, port.features * kSamples));
  }
  total = checksum(checksum(checksum(0, y, outputs * kSamples), y_dot, outputs * kSamples), x_bar, inputs * kSamples);
  printf("checksum %lld\n", total);
  lockstep_plan_free(plan);
  free(x), free(x_bar), free(y), free(y_dot);
  return 0;
}
