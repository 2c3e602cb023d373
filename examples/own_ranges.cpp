// Named ranges as C++ scopes: a range ends when its guard does, also when an
// exception leaves the scope.
//
//   own_ranges <output directory>
//
//   c++ own_ranges.cpp -lmsprof_agent -o own_ranges
#include <msprof_agent.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(std::int32_t result, const char *call)
{
    if (result == 0) {
        return;
    }
    char text[512];
    msprof_agent_last_error(text, sizeof text);
    throw std::runtime_error(std::string(call) + ": " + text);
}

class Range {
public:
    explicit Range(const char *name) { check(msprof_agent_push(name), "msprof_agent_push"); }
    ~Range() { msprof_agent_pop(); } // a destructor has nobody to tell
    Range(const Range &) = delete;
    Range &operator=(const Range &) = delete;
};

// A capture lasts at most as long as its object.
class Capture {
public:
    explicit Capture(const char *output)
    {
        check(msprof_agent_start(nullptr, output), "msprof_agent_start");
    }
    ~Capture()
    {
        if (running_) {
            msprof_agent_stop(nullptr, 0);
        }
    }
    Capture(const Capture &) = delete;
    Capture &operator=(const Capture &) = delete;

    std::string stop()
    {
        running_ = false;
        char path[4096];
        check(msprof_agent_stop(path, sizeof path), "msprof_agent_stop");
        return path;
    }

private:
    bool running_ = true;
};

class Regression {
public:
    explicit Regression(std::size_t features) : batch_(features), weights_(features) {}

    void load_batch(int step)
    {
        Range range("load batch");
        for (std::size_t i = 0; i < batch_.size(); i++) {
            batch_[i] = std::sin(0.001 * static_cast<double>(i) + step);
        }
    }

    double forward() const
    {
        Range range("forward");
        double sum = 0.0;
        for (std::size_t i = 0; i < batch_.size(); i++) {
            sum += weights_[i] * batch_[i];
        }
        return std::tanh(sum);
    }

    void backward(double error)
    {
        Range range("backward");
        for (std::size_t i = 0; i < batch_.size(); i++) {
            weights_[i] -= 1e-5 * error * batch_[i];
        }
    }

private:
    std::vector<double> batch_;
    std::vector<double> weights_;
};

void run(const char *output)
{
    Capture capture(output);
    Regression model(50000);
    double loss = 0.0;
    for (int step = 0; step < 10; step++) {
        Range range("step"); // ranges nest
        model.load_batch(step);
        loss = 1.0 - model.forward();
        model.backward(-loss);
    }
    std::string path = capture.stop();

    MsprofAgentStatus status{};
    status.size = sizeof status;
    check(msprof_agent_status(&status), "msprof_agent_status");
    std::printf("%s\nloss %.3f, records written %llu, lost %llu\n", path.c_str(), loss,
                static_cast<unsigned long long>(status.written),
                static_cast<unsigned long long>(status.lost));
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s <output directory>\n", argv[0]);
        return 2;
    }
    std::printf("agent %s\n", msprof_agent_version());
    try {
        run(argv[1]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
