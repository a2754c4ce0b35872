"""Small models of text and sound, with random weights."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def heads(x, count):
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class RmsNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(c) + 0.5)

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class Bert(nn.Module):
    """The mask comes as integers and hides words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32, padding_idx=0)
        self.places, self.types = nn.Embedding(64, 32), nn.Embedding(2, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.pooler, self.head = nn.Linear(32, 32), nn.Linear(32, 3)

    def forward(self, input_ids, attention_mask, token_type_ids):
        at = torch.arange(input_ids.size(1)).unsqueeze(0)
        x = self.norm(self.words(input_ids) + self.types(token_type_ids) +
                      self.places(at))
        mask = attention_mask[:, None, None, :].to(x.dtype)
        mask = (1.0 - mask) * torch.finfo(x.dtype).min
        for _ in range(2):
            q, k, v = (heads(f(x), 4) for f in (self.q, self.k, self.v))
            scores = q @ k.transpose(-1, -2) / math.sqrt(8) + mask
            x = self.norm1(x + self.o(joined(scores.softmax(-1) @ v)))
            x = self.norm2(x + self.down(F.gelu(self.up(x))))
        kept = attention_mask.unsqueeze(-1).float()
        mean = (x * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        return self.head(torch.tanh(self.pooler(x[:, 0]))), F.normalize(mean)


class Llama(nn.Module):
    """Rotary places, grouped heads, gated layers, its own causal mask."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 48)
        self.q = nn.Linear(48, 48, bias=False)
        self.k, self.v = (nn.Linear(48, 16, bias=False) for _ in range(2))
        self.o = nn.Linear(48, 48, bias=False)
        self.norm1, self.norm2, self.norm3 = (RmsNorm(48) for _ in range(3))
        self.gate, self.up = (nn.Linear(48, 96, bias=False) for _ in range(2))
        self.down = nn.Linear(96, 48, bias=False)
        self.register_buffer('rates',
                             1.0 / 10000**(torch.arange(0, 8, 2).float() / 8))

    @staticmethod
    def turned(x, cos, sin):
        a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, ids, position_ids):
        n, t = ids.shape
        x = self.words(ids)
        angles = (self.rates[None, :, None].expand(n, -1, 1) @
                  position_ids[:, None, :].float()).transpose(1, 2)
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        mask = torch.full((t, t), float('-inf')).triu(1)
        for _ in range(2):
            y = self.norm1(x)
            q, k, v = heads(self.q(y), 6), heads(self.k(y), 2), heads(
                self.v(y), 2)
            q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
            k, v = (z[:, :, None].expand(n, 2, 3, t, 8).reshape(n, 6, t, 8)
                    for z in (k, v))
            scores = q @ k.transpose(2, 3) / math.sqrt(8) + mask
            weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
            x = x + self.o(joined(weights @ v))
            y = self.norm2(x)
            x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.norm3(x) @ self.words.weight.t()


class GptStep(nn.Module):
    """One token with keys and values of those before it; ALiBi."""

    def __init__(self):
        super().__init__()
        self.words, self.qkv = nn.Embedding(100, 32), nn.Linear(32, 96)
        self.o, self.norm = nn.Linear(32, 32), nn.LayerNorm(32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, token, past_k, past_v):
        x = self.words(token)
        q, k, v = (heads(z, 4) for z in self.qkv(self.norm(x)).split(32, 2))
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        t = k.shape[2]
        slopes = 2.0**-(torch.arange(4).float() + 1) * 2
        alibi = slopes[:, None, None] * torch.arange(1 - t, 1)[None, None]
        scores = torch.baddbmm(alibi.expand(4, 1, t), q.flatten(0, 1),
                               k.flatten(0, 1).transpose(1, 2), alpha=8**-0.5)
        y = scores.softmax(-1) @ v.flatten(0, 1)
        x = x + self.o(joined(y.view(1, 4, 1, 8)))
        x = x + self.down(F.gelu(self.up(x), approximate='tanh'))
        logits = (x[:, -1] @ self.words.weight.t()) / 0.7
        best, at = logits.topk(5)
        return logits, best, at, k, v


class T5(nn.Module):
    """Encoder and decoder with biases from buckets of distances."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.near = nn.ModuleList(nn.Embedding(16, 4) for _ in range(2))
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Linear(32, 32, bias=False) for _ in range(4))
            for _ in range(3))
        self.norms = nn.ModuleList(RmsNorm(32) for _ in range(6))
        self.wi, self.wo = nn.Linear(32, 64, bias=False), nn.Linear(
            64, 32, bias=False)

    @staticmethod
    def buckets(apart, two_sided):
        count, result = 16, torch.zeros_like(apart)
        if two_sided:
            count //= 2
            result = result + (apart > 0).to(torch.long) * count
            apart = apart.abs()
        else:
            apart = -torch.min(apart, torch.zeros_like(apart))
        exact = count // 2
        far = exact + (torch.log(apart.float() / exact) / math.log(32 / exact) *
                       (count - exact)).to(torch.long)
        far = torch.min(far, torch.full_like(far, count - 1))
        return result + torch.where(apart < exact, apart, far)

    def bias(self, rows, columns, table, two_sided):
        apart = torch.arange(columns)[None] - torch.arange(rows)[:, None]
        return table(self.buckets(apart, two_sided)).permute(2, 0, 1)[None]

    @staticmethod
    def attend(layer, x, y, bias):
        q, k, v = heads(layer[0](x), 4), heads(layer[1](y), 4), heads(
            layer[2](y), 4)
        weights = F.softmax((q @ k.transpose(3, 2) + bias).float(), -1)
        return layer[3](joined(weights.type_as(q) @ v))

    def forward(self, ids, mask, decoder_ids):
        hidden = (1.0 - mask[:, None, None].float()) * -1e9
        x = self.words(ids)
        bias = self.bias(ids.size(1), ids.size(1), self.near[0], True)
        y = self.norms[0](x)
        x = x + self.attend(self.layers[0], y, y, bias + hidden)
        x = x + self.wo(F.relu(self.wi(self.norms[1](x))))
        memory = self.norms[2](x)
        x = self.words(decoder_ids)
        t = decoder_ids.size(1)
        at = torch.arange(t)
        causal = (at[None, None] <= at[None, :, None])[:, None].float()
        bias = self.bias(t, t, self.near[1], False) + (1 - causal) * -1e9
        y = self.norms[3](x)
        x = x + self.attend(self.layers[1], y, y, bias)
        x = x + self.attend(self.layers[2], self.norms[4](x), memory, hidden)
        return (self.norms[5](x) * 32**-0.5) @ self.words.weight.t()


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 24)
        self.body = nn.LSTM(24, 20, 2, batch_first=True, bidirectional=True)
        self.score, self.head = nn.Linear(40, 1), nn.Linear(40, 4)

    def forward(self, ids):
        x, (h, c) = self.body(self.words(ids))
        weights = F.softmax(self.score(x).squeeze(-1), 1)
        y = torch.bmm(weights.unsqueeze(1), x).squeeze(1)
        return self.head(y), torch.cat([h[-2], h[-1]], 1), c


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 24)
        self.body = nn.GRU(24, 20, 1, bidirectional=True)
        self.next = nn.RNN(40, 16, nonlinearity='tanh')
        self.head = nn.Linear(16, 4)

    def forward(self, ids, state):
        x, h = self.body(self.words(ids).transpose(0, 1), state)
        x, _ = self.next(x)
        return self.head(x.max(0)[0]), h


class Moe(nn.Module):
    """Two of four experts for each token."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(24, 4, bias=False)
        self.w1 = nn.Parameter(torch.randn(4, 24, 48) * 0.2)
        self.w2 = nn.Parameter(torch.randn(4, 48, 24) * 0.2)
        self.norm = nn.LayerNorm(24)

    def forward(self, x):
        y = self.norm(x)
        weights, at = torch.topk(F.softmax(self.gate(y), -1), 2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        hot = F.one_hot(at, 4).to(weights.dtype)
        spread = torch.zeros_like(self.gate(y)).scatter(-1, at, weights)
        mixed = torch.einsum('ntk,ntke->nte', weights, hot)
        hidden = F.silu(torch.einsum('ntc,ecf->entf', y, self.w1))
        out = torch.einsum('entf,efc->entc', hidden, self.w2)
        picked = (out * mixed.permute(2, 0, 1).unsqueeze(-1)).sum(0)
        return x + picked, spread


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(20, 32, 3, padding=1)
        self.conv2 = nn.Conv1d(32, 32, 3, stride=2, padding=1)
        self.words, self.places = nn.Embedding(60, 32), nn.Parameter(
            torch.randn(16, 32))
        self.encoder = nn.TransformerEncoderLayer(
            32, 4, 64, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoderLayer(
            32, 4, 64, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(32)

    @staticmethod
    def waves(length, c):
        rates = torch.exp(-math.log(10000) / (c // 2 - 1) *
                          torch.arange(c // 2))
        at = torch.arange(length)[:, None] * rates[None]
        return torch.cat([at.sin(), at.cos()], 1)

    def forward(self, mel, tokens):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1)
        x = self.norm(self.encoder(x + self.waves(x.shape[1], 32)))
        t = tokens.shape[1]
        mask = torch.full((t, t), float('-inf')).triu_(1)
        y = self.words(tokens) + self.places[:t]
        y = self.norm(self.decoder(y, x, tgt_mask=mask))
        return (y @ self.words.weight.transpose(0, 1)).float()


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv1d(1, 16, 1)
        self.layers = nn.ModuleList(nn.Conv1d(16, 32, 2, dilation=2**i)
                                    for i in range(4))
        self.outs = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(4))
        self.leave = nn.Conv1d(16, 8, 1)
        self.norm = nn.BatchNorm1d(16)

    def forward(self, wave):
        x, total = self.enter(wave), 0
        for i, (layer, out) in enumerate(zip(self.layers, self.outs)):
            a, b = layer(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = out(torch.tanh(a) * torch.sigmoid(b))
            x, total = x + y, total + y
        y = F.avg_pool1d(self.norm(F.softplus(total)), 4)
        return self.leave(F.interpolate(y, scale_factor=4.0, mode='linear'))


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8, bias=False)
        self.image = nn.MultiheadAttention(32, 4, batch_first=True)
        self.text = nn.MultiheadAttention(32, 4, batch_first=True)
        self.words, self.norm = nn.Embedding(60, 32), nn.LayerNorm(32)
        self.left = nn.Parameter(torch.randn(32, 24))
        self.right = nn.Parameter(torch.randn(32, 24))
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        x = self.norm(self.patches(image).flatten(2).permute(0, 2, 1))
        x = (x + self.image(x, x, x, need_weights=False)[0]).mean(1) @ self.left
        y = self.words(text)
        t = text.shape[1]
        mask = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = y + self.text(y, y, y, need_weights=False, attn_mask=mask)[0]
        y = y[torch.arange(y.shape[0]), text.argmax(-1)] @ self.right
        x = x / x.norm(dim=-1, keepdim=True)
        y = y / y.norm(dim=1, keepdim=True)
        logits = self.scale.exp() * x @ y.t()
        return logits, logits.t()


class StateSpace(nn.Module):
    """A selective scan, and linear attention by running sums."""

    def __init__(self):
        super().__init__()
        self.enter, self.conv = nn.Linear(16, 32), nn.Conv1d(
            16, 16, 4, padding=3, groups=16)
        self.rates = nn.Parameter(torch.rand(16, 4).log())
        self.b, self.c, self.dt = (nn.Linear(16, n) for n in (4, 4, 16))
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        a, gate = self.enter(x).chunk(2, -1)
        u = F.silu(self.conv(a.transpose(1, 2))[..., :x.shape[1]])
        u = u.transpose(1, 2)
        dt, b, c = F.softplus(self.dt(u)), self.b(u), self.c(u)
        decay = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.rates))
        fed = (dt * u).unsqueeze(-1) * b.unsqueeze(2)
        state, ys = torch.zeros_like(fed[:, 0]), []
        for i in range(x.shape[1]):
            state = decay[:, i] * state + fed[:, i]
            ys.append((state * c[:, i].unsqueeze(1)).sum(-1))
        y = torch.stack(ys, 1)
        k, q = F.elu(b) + 1, F.elu(c) + 1
        sums = torch.cumsum(k.unsqueeze(-1) * u.unsqueeze(2), 1)
        linear = torch.einsum('ntk,ntkc->ntc', q, sums) / (
            q * torch.cumsum(k, 1)).sum(-1, keepdim=True)
        return self.out((y + linear) * F.silu(gate))


def ids(*shape, top=100):
    return torch.randint(1, top, shape)


def mask(n, t, kept):
    return (torch.arange(t)[None] < torch.tensor(kept)[:, None]).long()


MODELS = {
    'bert_mask': (Bert, lambda: {
        'input_ids': ids(2, 12), 'attention_mask': mask(2, 12, [12, 7]),
        'token_type_ids': ids(2, 12, top=2)}),
    'llama_rotary': (Llama, lambda: {
        'ids': ids(2, 16), 'position_ids': torch.arange(16).repeat(2, 1)}),
    'gpt_step': (GptStep, lambda: {
        'token': ids(1, 1), 'past_k': torch.randn(1, 4, 9, 8),
        'past_v': torch.randn(1, 4, 9, 8)}),
    't5': (T5, lambda: {
        'ids': ids(2, 20), 'mask': mask(2, 20, [20, 11]),
        'decoder_ids': ids(2, 7)}),
    'lstm': (Lstm, lambda: {'ids': ids(3, 9)}),
    'gru': (Gru, lambda: {'ids': ids(3, 9), 'state': torch.randn(2, 3, 20)}),
    'moe': (Moe, lambda: {'x': torch.randn(2, 6, 24)}),
    'whisper': (Whisper, lambda: {
        'mel': torch.randn(1, 20, 40), 'tokens': ids(1, 8, top=60)}),
    'wavenet': (WaveNet, lambda: {'wave': torch.randn(2, 1, 64)}),
    'clip': (Clip, lambda: {
        'image': torch.randn(3, 3, 32, 32), 'text': ids(4, 10, top=60)}),
    'state_space': (StateSpace, lambda: {'x': torch.randn(2, 10, 16)}),
}
