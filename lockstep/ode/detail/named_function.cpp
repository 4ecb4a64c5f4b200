#include "lockstep/ode/detail/named_function.h"

#include "lockstep/core/hash.h"

namespace lockstep::ode::detail {

std::string FunctionName::digest(const std::string& net_digest) const {
  return ContentHash().add(kind).add(name).add(version).add(net_digest).hex();
}

Error wrong_precision(const std::string& name, const char* found, const char* expected) {
  return Error(ErrorKind::unsupported,
               {.field = "function " + name,
                .found = std::string("a ") + found + " solve of code that takes " + expected + " only",
                .expected = "code generic over its number type",
                .remedy = "take u, p and du as auto, or set options.precision to the one it takes"});
}

void refuse_lowering(const StateFunction& function, const char* number_type) {
  throw Error(ErrorKind::unsupported, {.field = function.description(),
                                       .found = "nothing lowered for " + std::string(number_type),
                                       .expected = "a function of tiles of that number type",
                                       .remedy = "set options.precision to the one it has"});
}

}  // namespace lockstep::ode::detail
