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

}  // namespace lockstep::ode::detail
