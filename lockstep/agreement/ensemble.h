// A solution as the verdict sees it, wherever it lies: in a result file of any size, or in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/agreement/certificate.h"
#include "lockstep/core/precision.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solution.h"

namespace lockstep::agreement {

class Ensemble {
 public:
  virtual ~Ensemble() = default;

  virtual std::string name() const = 0;          // as messages call it
  virtual Precision precision() const = 0;       // claimed: what `state` is stored as
  virtual std::size_t trajectories() const = 0;  // and so on
  virtual std::size_t save_points() const = 0;
  virtual std::vector<std::string> component_names() const = 0;

  // Rows [first, first + count): [trajectory][time][component] into memory for as many. float32 becomes float64
  // exactly; as float only where precision() is f32. From one thread at a time, any one.
  virtual void read_states(std::size_t first, std::size_t count, std::span<float> to) const = 0;
  virtual void read_states(std::size_t first, std::size_t count, std::span<double> to) const = 0;
  virtual std::vector<ode::TrajectoryRecord> records(std::size_t first, std::size_t count) const = 0;
  virtual std::vector<double> initial_states(std::size_t first, std::size_t count) const = 0;
  virtual std::vector<double> parameters(std::size_t trajectory) const = 0;
  virtual std::vector<double> times(std::size_t trajectory) const = 0;  // [time]
  // Of rows [first, first + count); those that all share without Impulses::first.
  virtual ode::Impulses impulses(std::size_t first, std::size_t count) const = 0;
  // Where each ended, at its record's end_time: [trajectory][component]; empty where either is not known.
  virtual std::vector<double> end_states(std::size_t, std::size_t) const { return {}; }
  // Whether it knows which resets struck, and those of rows [first, first + count).
  virtual bool keeps_events() const { return false; }
  virtual ode::EventLog events(std::size_t, std::size_t) const { return {}; }
  virtual double start_time() const = 0;                                // of the first trajectory
  virtual bool own_times() const = 0;                                   // of each trajectory, not shared
  virtual bool own_parameters() const = 0;

  virtual std::vector<std::pair<std::string, std::string>> provenance() const = 0;
  virtual std::optional<Certificate> certificate() const = 0;
  // The file it lies in; null in memory.
  virtual const ode::ResultFile* stored() const { return nullptr; }

  std::size_t components() const { return component_names().size(); }
  std::vector<double> states(std::size_t first, std::size_t count) const;
};

// A result file, read piece by piece.
class StoredEnsemble : public Ensemble {
 public:
  explicit StoredEnsemble(const std::filesystem::path& path) : file_(path) {}

  std::string name() const override { return file_.path().filename().string(); }
  Precision precision() const override { return file_.precision(); }
  std::size_t trajectories() const override { return file_.trajectories(); }
  std::size_t save_points() const override { return file_.save_points(); }
  std::vector<std::string> component_names() const override { return file_.component_names(); }
  void read_states(std::size_t first, std::size_t count, std::span<float> to) const override;
  void read_states(std::size_t first, std::size_t count, std::span<double> to) const override;
  std::vector<ode::TrajectoryRecord> records(std::size_t first, std::size_t count) const override;
  std::vector<double> initial_states(std::size_t first, std::size_t count) const override;
  std::vector<double> parameters(std::size_t trajectory) const override;
  std::vector<double> times(std::size_t trajectory) const override;
  std::vector<double> end_states(std::size_t first, std::size_t count) const override;
  double start_time() const override;
  ode::Impulses impulses(std::size_t first, std::size_t count) const override { return file_.impulses(first, count); }
  bool keeps_events() const override { return file_.keeps_events(); }
  ode::EventLog events(std::size_t first, std::size_t count) const override { return file_.events(first, count); }
  bool own_times() const override { return file_.times_per_trajectory(); }
  bool own_parameters() const override { return file_.parameters_per_trajectory(); }
  std::vector<std::pair<std::string, std::string>> provenance() const override;
  std::optional<Certificate> certificate() const override { return read_certificate(file_.path()); }

  const ode::ResultFile* stored() const override { return &file_; }

  const ode::ResultFile& file() const { return file_; }

 private:
  ode::ResultFile file_;
};

// Numbers in memory: of a solve, or of somebody else's solver for the same problem.
struct Numbers {
  std::string name = "solution";
  Precision precision = Precision::f64;
  std::vector<std::string> component_names;                     // [component]; empty: u0, u1, ...
  std::vector<double> states;                                   // [trajectory][time][component]
  std::vector<double> end_states;                               // [trajectory][component]; empty: not known
  std::vector<ode::TrajectoryRecord> records;                   // [trajectory]; empty: all succeeded
  std::optional<ode::EventLog> events;                          // where they are known
  std::vector<std::pair<std::string, std::string>> provenance;  // "method" and the like
  std::optional<Certificate> certificate;
};
Numbers numbers_of(const ode::Solution& solution);

class HeldEnsemble : public Ensemble {
 public:
  // The problem's initial states, parameters and times are copied. Throws Error (invalid_argument) when the numbers
  // are not as many as the problem needs.
  HeldEnsemble(ode::Problem problem, Numbers numbers);

  std::string name() const override { return numbers_.name; }
  Precision precision() const override { return numbers_.precision; }
  std::size_t trajectories() const override { return problem_.trajectories(); }
  std::size_t save_points() const override { return problem_.save_points(); }
  std::vector<std::string> component_names() const override;
  void read_states(std::size_t first, std::size_t count, std::span<float> to) const override;
  void read_states(std::size_t first, std::size_t count, std::span<double> to) const override;
  std::vector<ode::TrajectoryRecord> records(std::size_t first, std::size_t count) const override;
  std::vector<double> initial_states(std::size_t first, std::size_t count) const override;
  std::vector<double> parameters(std::size_t trajectory) const override;
  std::vector<double> times(std::size_t trajectory) const override;
  ode::Impulses impulses(std::size_t first, std::size_t count) const override;
  std::vector<double> end_states(std::size_t first, std::size_t count) const override;
  bool keeps_events() const override { return numbers_.events.has_value(); }
  ode::EventLog events(std::size_t first, std::size_t count) const override;
  double start_time() const override { return problem_.start_time(0); }
  bool own_times() const override { return problem_.save_times_per_trajectory; }
  bool own_parameters() const override;
  std::vector<std::pair<std::string, std::string>> provenance() const override { return numbers_.provenance; }
  std::optional<Certificate> certificate() const override { return numbers_.certificate; }

 private:
  ode::Problem problem_;
  Numbers numbers_;
};

// The first trajectory of `again`, which was solved without perturbation, whose states are not the ensemble's to the
// bit; nothing where all are. Cancelled trajectories, and those not stored because they start outside a net's range,
// are not asked.
std::optional<std::size_t> first_of_other_bits(const Ensemble& ensemble, const Certificate& again);

}  // namespace lockstep::agreement
