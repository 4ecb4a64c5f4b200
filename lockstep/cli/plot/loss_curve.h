// The loss over the iterations of a training, as a gnuplot script.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/plot/figures.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::cli {

// Logarithmic where all losses are positive, but for those that hardly change. `subtitle` is a line of provenance,
// `watched` names what the watched loss is taken of, where that is not the training loss, `phases` the phases, of which
// each new one is marked.
Figure loss_curve(const std::vector<train::CurvePoint>& curve, const std::string& title, const std::string& subtitle,
                  const std::string& loss, const std::string& watched, const std::vector<std::string>& phases);

}  // namespace lockstep::cli
