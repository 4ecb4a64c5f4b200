"""PyTorch and Triton on a GPU: nets eager, compiled and as CUDA graphs; the Lorenz equations and Tsit5 by hand."""
import gc
import time

import numpy as np

from gpu_peers_data import (NETS, Clock, lorenz_figures, lorenz_reference, make_net, mlp_figures,
                            neural_figures, neural_reference, neural_states, neural_weights, numpy_mlp, short,
                            torch_samples, tsit5_step)


class TorchPeers:
    def __init__(self, args):
        import torch
        self.args, self.torch = args, torch
        if args.platform == "gpu" and not torch.cuda.is_available():
            raise RuntimeError("torch sees no CUDA device")
        self.gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.gpu else "cpu")
        self.device_name = torch.cuda.get_device_name(0) if self.gpu else "cpu"
        self.versions = dict(torch=torch.__version__)
        self.clock = Clock(args, torch_samples(torch))
        torch.ones(1, device=self.device)

    def prepare(self, row):
        # the older switches; they reach cuBLAS, cuBLASLt and torch.compile alike
        self.torch.backends.cuda.matmul.allow_tf32 = row["case"]["precision"] == "tf32"
        self.torch.backends.cudnn.allow_tf32 = row["case"]["precision"] == "tf32"

    def clean(self):
        gc.collect()
        if self.gpu:
            self.torch.cuda.synchronize()
            self.torch.cuda.empty_cache()

    def graph(self, fn, warmups=3):
        """fn recorded in a CUDA graph (on the CPU fn itself); returns (replay, its output)."""
        torch = self.torch
        if not self.gpu:
            return fn, fn()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(warmups):
                fn()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = fn()
        return graph.replay, out

    def put(self, array, dtype=None):
        return self.torch.from_numpy(np.array(array)).to(self.device, dtype)

    def sequential(self, layers, act, dtype=None):
        torch, mods = self.torch, []
        for i, (w, b) in enumerate(layers):
            lin = torch.nn.Linear(*w.shape)
            lin.weight.data, lin.bias.data = torch.from_numpy(w.T.copy()), torch.from_numpy(b.copy())
            mods.append(lin)
            if i + 1 < len(layers):
                mods.append(torch.nn.ReLU() if act == "relu" else torch.nn.Tanh())
        return torch.nn.Sequential(*mods).to(self.device, dtype)

    def mlp(self, row):
        torch, n, peer = self.torch, row["size"], row["peer"]
        widths, act = NETS[row["case"]["net"]]
        dtype = torch.bfloat16 if row["case"]["precision"] == "bf16" else torch.float32
        layers = make_net(widths)
        net = self.sequential(layers, act, dtype).eval().requires_grad_(False)
        torch.manual_seed(n)
        x = torch.randn(n, widths[0], device=self.device).to(dtype)
        params = [(m.weight.t(), m.bias) for m in net if hasattr(m, "weight")]

        def fused():  # bias and relu in the product's epilogue
            h = x
            for w, b in params[:-1]:
                h = torch._addmm_activation(b, h, w)
            return torch.addmm(params[-1][1], h, params[-1][0])
        fn = fused if "addmm-relu" in peer else lambda: net(x)
        t0 = time.perf_counter()
        if "compile" in peer:
            torch._dynamo.reset()
            mode = "max-autotune-no-cudagraphs" if "max-autotune" in peer else None
            fast = torch.compile(net, dynamic=False, mode=mode)
            fn = lambda: fast(x)
        with torch.no_grad():
            out = fn()
            if "graph" in peer or "compile" in peer:
                fn, out = self.graph(fn)
            self.clean()
            built = time.perf_counter() - t0
            timing = self.clock(fn)
            latency = []
            for _ in range(20 if n <= 4096 else 0):
                t0 = time.perf_counter()
                fn()
                if self.gpu:
                    torch.cuda.synchronize()
                latency.append(time.perf_counter() - t0)
        ref = numpy_mlp(layers, act, x[:64].float().cpu().numpy())
        more = dict(max_abs_err=short(np.max(np.abs(out[:64].float().cpu().numpy() - ref))))
        if latency:
            more["latency_us"] = short(1e6 * min(latency))
        if "compile" in peer:
            more["cuda_graph"] = self.gpu
        return mlp_figures(timing, widths, n, dict(more, compile_s=short(built)))

    def lorenz(self, row):
        """One Triton kernel for all steps: the state never leaves the registers."""
        torch, n, block = self.torch, row["size"], 256
        kernel = triton_lorenz()
        rho64 = torch.linspace(0, 21, n, dtype=torch.float64)
        rho = rho64.float().to(self.device)
        out = torch.empty(3, n, device=self.device)
        fn = lambda: kernel[((n + block - 1) // block,)](rho, out, n, 1e-3, STEPS=1000,
                                                             BLOCK=block)
        timing = self.clock(fn)
        at, ref = lorenz_reference(n)
        error = np.max(np.abs(out[:, torch.from_numpy(at)].t().cpu().numpy() - ref))
        return lorenz_figures(timing, n, None, error, 1000)

    def neural(self, row):
        """Fixed steps of Tsit5, all 600 evaluations of the net in one CUDA graph."""
        torch, n = self.torch, row["size"]
        layers, source = neural_weights()
        y0 = neural_states(n)
        (w0, b0), (w1, b1) = ((self.put(w), self.put(b)) for w, b in layers)
        start = self.put(y0)
        out = torch.empty(101, n, 3, device=self.device)
        out[0] = start
        f = lambda y: torch.addmm(b1, torch.tanh(torch.addmm(b0, y, w0)), w1)

        def run():
            y, k1 = start, f(start)
            for i in range(1, 101):
                y, ks = tsit5_step(f, y, k1, 0.01)
                k1 = ks[6]
                out[i] = y
            return out
        with torch.no_grad():
            t0 = time.perf_counter()
            fn, _ = self.graph(run, 1)
            built = time.perf_counter() - t0
            timing = self.clock(fn)
        at, ref = neural_reference(layers, y0)
        error = np.max(np.abs(out[:, torch.from_numpy(at)].cpu().numpy() - ref))
        return neural_figures(timing, n, None, error, 100, source, compile_s=short(built))


def triton_lorenz():
    """The kernel is made here so that this file imports without triton."""
    global tl
    import triton
    import triton.language as tl

    @triton.jit
    def lorenz_rk4(rho_ptr, out_ptr, n, dt, STEPS: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        r = tl.load(rho_ptr + i, mask=mask, other=0.0)
        x = r * 0.0 + 1.0
        y = r * 0.0
        z = r * 0.0
        for _ in range(STEPS):
            ax = 10.0 * (y - x)
            ay = x * (r - z) - y
            az = x * y - 2.6666666666666665 * z
            px = x + 0.5 * dt * ax
            py = y + 0.5 * dt * ay
            pz = z + 0.5 * dt * az
            bx = 10.0 * (py - px)
            by = px * (r - pz) - py
            bz = px * py - 2.6666666666666665 * pz
            px = x + 0.5 * dt * bx
            py = y + 0.5 * dt * by
            pz = z + 0.5 * dt * bz
            cx = 10.0 * (py - px)
            cy = px * (r - pz) - py
            cz = px * py - 2.6666666666666665 * pz
            px = x + dt * cx
            py = y + dt * cy
            pz = z + dt * cz
            ex = 10.0 * (py - px)
            ey = px * (r - pz) - py
            ez = px * py - 2.6666666666666665 * pz
            x = x + dt / 6.0 * (ax + 2.0 * (bx + cx) + ex)
            y = y + dt / 6.0 * (ay + 2.0 * (by + cy) + ey)
            z = z + dt / 6.0 * (az + 2.0 * (bz + cz) + ez)
        tl.store(out_ptr + i, x, mask=mask)
        tl.store(out_ptr + n + i, y, mask=mask)
        tl.store(out_ptr + 2 * n + i, z, mask=mask)
    return lorenz_rk4
