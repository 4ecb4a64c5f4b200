// The tokamak of this example: circular flux surfaces, fixed density and current, heating in the middle; and what the
// net is asked and answers in its terms. SI units, temperatures in J unless the name says keV.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "lockstep/nn/compile.h"
#include "lockstep/nn/model.h"

namespace tokamak {

constexpr double kElectronCharge = 1.602176634e-19, kProtonMass = 1.67262192e-27, kElectronMass = 9.1093837e-31;
constexpr double kKeV = 1e3 * kElectronCharge;
constexpr double kPi = 3.14159265358979;

struct Machine {
  double major_radius = 3, minor_radius = 1;            // m
  double magnetic_field = 3;                            // T
  double ion_mass = 2 * kProtonMass;                    // deuterium
  double ion_power = 6e6, electron_power = 4e6;         // W
  double heating_width = 0.3;                           // of the minor radius
  double edge_position = 0.95, edge_temperature = 0.5;  // r/a; keV, ions and electrons, kept
  double coulomb_logarithm = 17;
  double least_diffusivity = 0.2;  // m2/s, what collisions leave where there is no turbulence
};

// At x = r/a. The density peaks a little; the safety factor gives a shear of x/q dq/dx.
inline double density(double x) { return 6e19 * (1 - 0.35 * x * x); }  // 1/m3
inline double safety_factor(double x) { return 1 + 2.2 * x * x; }
inline double magnetic_shear(double x) { return 4.4 * x * x / safety_factor(x); }
inline double density_gradient(double x) { return -6e19 * 0.7 * x; }  // by x

// Between collisions of an electron (Wesson, Tokamaks, section 14.5), T in keV.
inline double electron_collision_time(const Machine& machine, double n, double t_kev) {
  return 1.09e16 * std::pow(t_kev, 1.5) / (n * machine.coulomb_logarithm);
}

// Cells of equal width from the axis to edge_position; their temperatures in keV.
struct State {
  std::vector<double> ions, electrons;
};
struct Grid {
  std::size_t cells = 64;
  double width(const Machine& machine) const {
    return machine.edge_position * machine.minor_radius / double(cells);
  }  // m
};

struct Fluxes {
  std::vector<double> ions, electrons;  // W/m2 through the inner faces 1 .. cells, [face - 1]; the last is the edge
};

// Turbulent heat fluxes by QLKNN_7_11, all faces in one call. The net's ten inputs are local and without unit; its
// answers are in gyro-Bohm units, n T chi / a with chi = sqrt(m) T^1.5 / (e^2 B^2 a).
class Turbulence {
 public:
  Turbulence(const lockstep::nn::Model& model, const Machine& machine, const Grid& grid)
      : net_(lockstep::nn::compile<double>(model)),
        machine_(machine),
        grid_(grid),
        features_(model.inputs.front().features),
        in_(grid.cells * net_.inputs()),
        out_(grid.cells * net_.outputs()) {}

  std::size_t inputs() const { return net_.inputs(); }
  std::size_t outputs() const { return net_.outputs(); }
  // Of the last call: how many of the inputs lay outside the range the net was trained on and were taken back to it.
  std::size_t clamped() const { return clamped_; }

  void evaluate(const State& state, Fluxes& fluxes) {
    const double h = grid_.width(machine_), a = machine_.minor_radius;
    clamped_ = 0;
    for (std::size_t f = 0; f < grid_.cells; ++f) {
      const Face ion = face(state.ions, f), electron = face(state.electrons, f);
      const double r = double(f + 1) * h, x = r / a, n = density(x), major = machine_.major_radius;
      const double bounce =
          safety_factor(x) * major / std::pow(r / major, 1.5) / std::sqrt(electron.value * kKeV / kElectronMass);
      const double rate = 1 / electron_collision_time(machine_, n, electron.value);
      const double asked[10] = {-major * ion.slope / ion.value,
                                -major * electron.slope / electron.value,
                                -major / a * density_gradient(x) / n,
                                -major / a * density_gradient(x) / n,
                                safety_factor(x),
                                magnetic_shear(x),
                                x,
                                ion.value / electron.value,
                                std::log10(rate * bounce),
                                1};
      for (std::size_t i = 0; i < 10; ++i) {
        const double inside = std::clamp(asked[i], features_[i].minimum, features_[i].maximum);
        clamped_ += inside != asked[i];
        in_[i * grid_.cells + f] = inside;
      }
    }
    net_.evaluate(lockstep::MatrixView<const double>::column_major(in_.data(), grid_.cells, 10),
                  lockstep::MatrixView<double>::column_major(out_.data(), grid_.cells, 8));
    for (std::size_t f = 0; f < grid_.cells; ++f) {
      // Each branch has a leading flux, never inward, and the ratio of the other species' to it.
      const auto answer = [&](std::size_t i) { return out_[i * grid_.cells + f]; };
      const double itg_ions = std::max(answer(0), 0.0), tem_electrons = std::max(answer(2), 0.0);
      const double ions = itg_ions + tem_electrons * answer(3);
      const double electrons = itg_ions * answer(1) + tem_electrons + std::max(answer(5), 0.0);
      const Face ion = face(state.ions, f), electron = face(state.electrons, f);
      const double n = density(double(f + 1) * h / a), t = ion.value * kKeV;
      const double e_b = kElectronCharge * machine_.magnetic_field;
      const double unit = n * t / a * std::sqrt(machine_.ion_mass) * std::pow(t, 1.5) / (e_b * e_b * a);
      const double collisions = n * machine_.least_diffusivity * kKeV;
      fluxes.ions[f] = unit * ions - collisions * ion.slope;
      fluxes.electrons[f] = unit * electrons - collisions * electron.slope;
    }
  }

 private:
  struct Face {
    double value, slope;  // keV, keV/m
  };
  // Between cells f and f + 1; the edge lies half a cell from the last one's middle.
  Face face(const std::vector<double>& t, std::size_t f) const {
    const double h = grid_.width(machine_), edge = machine_.edge_temperature;
    if (f + 1 < grid_.cells) return {(t[f] + t[f + 1]) / 2, (t[f + 1] - t[f]) / h};
    return {edge, (edge - t[f]) / (h / 2)};
  }

  lockstep::Plan<double> net_;
  Machine machine_;
  Grid grid_;
  std::vector<lockstep::nn::Feature> features_;
  std::vector<double> in_, out_;  // [feature][face]
  std::size_t clamped_ = 0;
};

}  // namespace tokamak
