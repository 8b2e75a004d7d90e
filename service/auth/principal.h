#ifndef PLANEWISE_SERVICE_AUTH_PRINCIPAL_H_
#define PLANEWISE_SERVICE_AUTH_PRINCIPAL_H_
// Who asks. In every request from the first day, so that tenants and
// permissions find their place.

#include <string>

namespace planewise {

struct Principal {
  std::string name;  // for example "unix:1000" or "token"

  bool operator==(const Principal&) const = default;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_AUTH_PRINCIPAL_H_
