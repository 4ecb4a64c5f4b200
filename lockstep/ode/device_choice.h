// Which devices a solve runs on: the value of --device and of run.device in a problem file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ode {

// One device's part of the ensemble.
struct DeviceShare {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;         // of a CUDA device, as nvidia-smi numbers them
  double percent = 100;  // of the trajectories

  friend bool operator==(const DeviceShare&, const DeviceShare&) = default;
};

struct DeviceChoice {
  std::vector<DeviceShare> shares;  // empty: automatic, by predicted times

  static DeviceChoice automatic() { return {}; }
  static DeviceChoice cpu() { return {{DeviceShare{}}}; }
  static DeviceChoice cuda(int index = 0) { return {{DeviceShare{DeviceShare::Kind::cuda, index, 100}}}; }

  bool is_automatic() const { return shares.empty(); }
  bool uses_cpu() const;
  bool uses_cuda() const;
  // Shares above 0 that add up to 100 of different devices. Throws Error (invalid_argument) on `field`.
  void validate(const std::string& field = "options.device") const;

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};

// "auto", "cpu", "cuda", "cuda:1", or shares such as "cpu=20%,cuda=80%" and "cuda:0=70%,cuda:1=30%". The bits do not
// depend on it. Throws Error (invalid_argument), its field `where`.
DeviceChoice parse_device(std::string_view text, const std::string& where = "device");

// What parse_device reads.
std::string to_string(const DeviceChoice& choice);

}  // namespace lockstep::ode
