// Heat transport in a tokamak: two heat equations in the radius, ions and electrons, whose turbulent fluxes are QLKNN's
// at every step, until the profiles stand.
//   tokamak_transport testdata/qlknn_7_11_tanh_10_133x5_8.safetensors --draw tokamak.png
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "examples/tokamak_transport/plasma.h"
#include "lockstep/cli/plot/gnuplot.h"
#include "lockstep/nn/load.h"

namespace {

using namespace lockstep;
using namespace tokamak;

struct Arguments {
  std::string model = "testdata/qlknn_7_11_tanh_10_133x5_8.safetensors", draw;
  int cells = 64;
  double end = 0.5, dt = 1e-3;  // s
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double area(const Machine& machine, double r) { return 4 * kPi * kPi * machine.major_radius * r; }  // m2
double volume(const Machine& machine, double r) {
  return 2 * kPi * kPi * machine.major_radius * r * r;
}  // m3, inside r

// W in each cell, `power` in all.
std::vector<double> heating(const Machine& machine, const Grid& grid, double power) {
  std::vector<double> watts(grid.cells);
  double sum = 0;
  const double h = grid.width(machine);
  for (std::size_t i = 0; i < grid.cells; ++i) {
    const double x = (double(i) + 0.5) * h / machine.minor_radius / machine.heating_width;
    watts[i] = std::exp(-x * x) * (volume(machine, double(i + 1) * h) - volume(machine, double(i) * h));
    sum += watts[i];
  }
  for (double& w : watts) w *= power / sum;
  return watts;
}

class Transport {
 public:
  Transport(const nn::Model& model, const Machine& machine, const Grid& grid)
      : machine_(machine), grid_(grid), h_(grid.width(machine)), turbulence(model, machine, grid) {
    for (std::size_t i = 0; i < grid.cells; ++i) {
      const double x = (double(i) + 0.5) / double(grid.cells);
      state.ions.push_back(machine.edge_temperature + 0.5 * (1 - x * x));
      state.electrons.push_back(machine.edge_temperature + 0.5 * (1 - x * x));
    }
    fluxes.ions.resize(grid.cells);
    fluxes.electrons.resize(grid.cells);
    ion_heating_ = heating(machine, grid, machine.ion_power);
    electron_heating_ = heating(machine, grid, machine.electron_power);
  }

  // One step of dt: 3/2 n dT/dt = -1/r d(r q)/dr + heating + exchange in each cell's volume. The fluxes rise steeply
  // with the slopes: a large diffusivity is added implicitly and taken away explicitly, which keeps long steps stable
  // and leaves the steady state as it is (Pereverzev & Corrigan 2008).
  void step(double dt) {
    const double start = seconds();
    turbulence.evaluate(state, fluxes);
    net_seconds += seconds() - start;
    std::vector<double> from_electrons(grid_.cells);  // W
    for (std::size_t i = 0; i < grid_.cells; ++i) {
      const double n = density(middle(i) / machine_.minor_radius);
      const double tau = electron_collision_time(machine_, n, state.electrons[i]);
      from_electrons[i] = 3 * kElectronMass / machine_.ion_mass * n / tau * (state.electrons[i] - state.ions[i]) *
                          kKeV * cell_volume(i);
    }
    std::vector<double> ion_sources = ion_heating_, electron_sources = electron_heating_;
    for (std::size_t i = 0; i < grid_.cells; ++i) {
      ion_sources[i] += from_electrons[i];
      electron_sources[i] -= from_electrons[i];
    }
    advance(state.ions, fluxes.ions, ion_sources, dt);
    advance(state.electrons, fluxes.electrons, electron_sources, dt);
  }

  // Heat content in J, and in W what crosses the edge outwards.
  double content() const {
    double sum = 0;
    for (std::size_t i = 0; i < grid_.cells; ++i) {
      sum += 1.5 * density(middle(i) / machine_.minor_radius) * (state.ions[i] + state.electrons[i]) * kKeV *
             cell_volume(i);
    }
    return sum;
  }
  double lost() const {
    return area(machine_, double(grid_.cells) * h_) * (fluxes.ions.back() + fluxes.electrons.back());
  }
  double middle(std::size_t i) const { return (double(i) + 0.5) * h_; }

 private:
  double cell_volume(std::size_t i) const {
    return volume(machine_, double(i + 1) * h_) - volume(machine_, double(i) * h_);
  }

  // Implicit in the added diffusivity: one tridiagonal system.
  void advance(std::vector<double>& t, std::vector<double>& q, const std::vector<double>& sources, double dt) const {
    constexpr double kAdded = 20;  // m2/s
    const std::size_t n = grid_.cells;
    // conductance[f]: W/keV by the added diffusivity through the face outside of cell f.
    std::vector<double> conductance(n), diagonal(n), right(n);
    for (std::size_t f = 0; f < n; ++f) {
      const double r = double(f + 1) * h_, distance = f + 1 < n ? h_ : h_ / 2;
      conductance[f] = area(machine_, r) * density(r / machine_.minor_radius) * kAdded * kKeV / distance;
    }
    const double edge = machine_.edge_temperature;
    for (std::size_t i = 0; i < n; ++i) {
      const double capacity = 1.5 * density(middle(i) / machine_.minor_radius) * kKeV * cell_volume(i) / dt;
      const double next = i + 1 < n ? t[i + 1] : edge;
      const double outward = area(machine_, double(i + 1) * h_) * q[i] - conductance[i] * (t[i] - next);
      const double inward =
          i > 0 ? area(machine_, double(i) * h_) * q[i - 1] - conductance[i - 1] * (t[i - 1] - t[i]) : 0;
      diagonal[i] = capacity + conductance[i] + (i > 0 ? conductance[i - 1] : 0);
      right[i] = capacity * t[i] + sources[i] + inward - outward + (i + 1 < n ? 0 : conductance[i] * edge);
    }
    for (std::size_t i = 1; i < n; ++i) {
      const double share = conductance[i - 1] / diagonal[i - 1];
      diagonal[i] -= share * conductance[i - 1];
      right[i] += share * right[i - 1];
    }
    t[n - 1] = right[n - 1] / diagonal[n - 1];
    for (std::size_t i = n - 1; i-- > 0;) t[i] = (right[i] + conductance[i] * t[i + 1]) / diagonal[i];
  }

  Machine machine_;
  Grid grid_;
  double h_;  // m
  std::vector<double> ion_heating_, electron_heating_;

 public:
  Turbulence turbulence;
  State state;
  Fluxes fluxes;
  double net_seconds = 0;
};

// "x ions electrons" of each cell, to plot.
std::string profile(const Transport& transport, const Machine& machine, const std::string& name) {
  std::string rows = "$" + name + " << EOD\n";
  for (std::size_t i = 0; i < transport.state.ions.size(); ++i) {
    char line[80];
    std::snprintf(line, sizeof line, "%.4f %.5f %.5f\n", transport.middle(i) / machine.minor_radius,
                  transport.state.ions[i], transport.state.electrons[i]);
    rows += line;
  }
  return rows + "EOD\n";
}

void draw(const std::string& profiles, const std::string& history, const std::vector<double>& shown,
          const std::string& path) {
  const auto curves = [&](int column) {
    std::string text;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      char label[120];
      std::snprintf(label, sizeof label,
                    "%s$p%zu using 1:%d with lines linewidth 2.5 linecolor palette frac %.2f title '%g s'",
                    i == 0 ? "" : ", ", i, column, double(i) / double(shown.size() - 1), shown[i]);
      text += label;
    }
    return text + "\n";
  };
  const std::string script =
      profiles + history +
      "set multiplot layout 1,3\nunset colorbox\nset palette defined (0 '#9ecae1', 1 '#08306b')\n"
      "set xlabel 'r / a'\nset ylabel 'temperature (keV)'\nset yrange [0:*]\nset key top right\n"
      "set title 'ions'\nplot " +
      curves(2) + "set palette defined (0 '#fdbe85', 1 '#7f2704')\nset title 'electrons'\nplot " + curves(3) +
      "set title 'power'\nset xlabel 'time (s)'\nset ylabel 'MW'\n"
      "set yrange [0:12]\nset xtics 0.1\nset key bottom right\n"
      "plot $history using 1:2 with lines linewidth 2.5 linecolor rgb '#0072b2' title 'through the edge', "
      "$history using 1:3 with lines dashtype 2 linewidth 2 linecolor rgb '#444444' title 'heating'\nunset multiplot\n";
  cli::draw(script, path, path.ends_with(".svg") ? cli::PictureFormat::svg : cli::PictureFormat::png, {2100, 700});
  std::printf("drew %s\n", path.c_str());
}

int run(const Arguments& arguments) {
  const nn::Model model = nn::load(arguments.model);
  const Machine machine;
  const Grid grid{.cells = static_cast<std::size_t>(arguments.cells)};
  Transport transport(model, machine, grid);
  if (transport.turbulence.inputs() != 10 || transport.turbulence.outputs() != 8) {
    std::fprintf(stderr, "tokamak_transport: the net has %zu inputs and %zu outputs, QLKNN_7_11 has 10 and 8\n",
                 transport.turbulence.inputs(), transport.turbulence.outputs());
    return 2;
  }
  const double power = machine.ion_power + machine.electron_power;
  const long steps = std::lround(arguments.end / arguments.dt);
  const std::vector<double> shares = {0, 0.04, 0.12, 0.3, 1};
  std::vector<double> shown;
  std::string profiles, history = "$history << EOD\n";
  std::printf("   time   ions(0)  electrons(0)   stored   through the edge\n");
  const double start = seconds();
  double unaccounted = 0;
  for (long i = 0; i <= steps; ++i) {
    const double time = double(i) * arguments.dt, before = transport.content();
    for (const double share : shares) {
      if (i != std::lround(share * double(steps))) continue;
      profiles += profile(transport, machine, "p" + std::to_string(shown.size()));
      shown.push_back(time);
    }
    if (i == steps) break;
    transport.step(arguments.dt);
    // Fluxes are those at the step's start, so that this comes to zero as the profiles come to rest.
    unaccounted = power - transport.lost() - (transport.content() - before) / arguments.dt;
    char line[80];
    std::snprintf(line, sizeof line, "%.5g %.5g %.5g\n", time, transport.lost() / 1e6, power / 1e6);
    history += line;
    if (i % std::max(1L, steps / 10) == 0) {
      std::printf("%5.2f s %5.2f keV %8.2f keV %8.2f MJ %10.2f MW\n", time, transport.state.ions[0],
                  transport.state.electrons[0], transport.content() / 1e6, transport.lost() / 1e6);
    }
  }
  history += "EOD\n";
  const double all = seconds() - start;
  std::printf("%5.2f s %5.2f keV %8.2f keV %8.2f MJ %10.2f MW\n", arguments.end, transport.state.ions[0],
              transport.state.electrons[0], transport.content() / 1e6, transport.lost() / 1e6);
  std::printf(
      "heating %.2f MW, through the edge %.2f MW, balance open by %.1e of it; %zu inputs outside the net's range\n",
      power / 1e6, transport.lost() / 1e6, std::fabs(unaccounted) / power, transport.turbulence.clamped());
  std::printf("%ld steps of %d faces: %.0f us a step, %.0f %% of it the fluxes\n", steps, arguments.cells,
              1e6 * all / double(steps), 100 * transport.net_seconds / all);
  if (!arguments.draw.empty()) draw(profiles, history, shown, arguments.draw);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Heat transport in a tokamak with QLKNN's turbulent fluxes.", "tokamak_transport");
  app.add_option("MODEL", arguments.model, "QLKNN_7_11 as a stack of layers, 10 inputs and 8 outputs")
      ->capture_default_str();
  app.add_option("--cells", arguments.cells, "of the radius")->check(CLI::Range(8, 10000))->capture_default_str();
  app.add_option("--end", arguments.end, "seconds")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--dt", arguments.dt, "seconds")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--draw", arguments.draw, "picture of profiles and power (.png or .svg)");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokamak_transport: %s\n", error.what());
    return 2;
  }
}
