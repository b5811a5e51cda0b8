#include <pyplaypen/sandbox.h>

#include <iostream>

int main() {
  pyplaypen::SandboxOptions options;
  options.on_unenforceable = pyplaypen::OnUnenforceable::kWarn;  // wherever it is built
  pyplaypen::Sandbox sandbox(options);
  const pyplaypen::Result result = sandbox.execute("1 + 1");
  if (!result.ok()) {
    std::cerr << result.error->message << '\n';
    return 1;
  }
  std::cout << result.return_value << '\n';
}
