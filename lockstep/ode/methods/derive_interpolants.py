#!/usr/bin/env python3
"""Derives the interpolants' weights p_jm of dopri5, tsit5, dop853 and rodas5p exactly, and checks that the headers beside this
script hold them, each rounded once to double. Run it without arguments; it needs nothing but Python."""

import pathlib
import sys
from fractions import Fraction as F


def product(p, q):
    """Of two polynomials, coefficients from the lowest power up."""
    result = [F(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            result[i + j] += x * y
    return result


def hairer(b, last, d):
    """Hairer's form (Hairer, Norsett & Wanner I, II.6): with s = theta, r = 1 - theta,

      y - y0 = h (s F1 + s r F2 + s^2 r F3 + s^2 r^2 F4 + s^3 r^2 F5 + s^3 r^3 F6 + s^4 r^3 F7),
      F1 = sum b_j k_j,  F2 = k_1 - F1,  F3 = 2 F1 - k_1 - k_last,  F4 .. = sum d_j k_j.

    Returns [stage][power], powers 1 and up."""
    shapes = [[F(0), F(1)]]
    while len(shapes) < 3 + len(d):
        shapes.append(product(shapes[-1], [F(1), F(-1)] if len(shapes) % 2 else [F(0), F(1)]))
    weights = []
    for j in range(len(b)):
        first, end = F(j == 0), F(j == last)
        parts = [b[j], first - b[j], 2 * b[j] - first - end] + [row[j] for row in d]
        powers = [F(0)] * len(shapes[-1])
        for part, shape in zip(parts, shapes):
            for m, x in enumerate(shape):
                powers[m] += part * x
        weights.append(powers[1:])
    return weights


def dopri5():
    """d: Hairer, Norsett & Wanner I, II.6, the code DOPRI5 (Shampine's interpolant)."""
    b = [F(35, 384), F(0), F(500, 1113), F(125, 192), F(-2187, 6784), F(11, 84), F(0)]
    d = [F(-12715105075, 11282082432), F(0), F(87487479700, 32700410799), F(-10690763975, 1880347072),
         F(701980252875, 199316789632), F(-1453857185, 822651844), F(69997945, 29380423)]
    return hairer(b, 6, [d])


def dop853():
    """b and d: the code DOP853 of Hairer, Norsett & Wanner I."""
    b = [
        "0.0542937341165687622380535766363", "0", "0", "0", "0", "4.45031289275240888144113950566",
        "1.89151789931450038304281599044", "-5.8012039600105847814672114227", "0.31116436695781989440891606237",
        "-0.152160949662516078556178806805", "0.201365400804030348374776537501",
        "0.0447106157277725905176885569043", "0", "0", "0", "0",
    ]
    d = [
        ["-8.4289382761090128651353491142", "0", "0", "0", "0", "0.56671495351937776962531783590",
         "-3.0689499459498916912797304727", "2.3846676565120698287728149680", "2.1170345824450282767155149946",
         "-0.87139158377797299206789907490", "2.2404374302607882758541771650",
         "0.63157877876946881815570249290", "-0.088990336451333310820698117400",
         "18.148505520854727256656404962", "-9.1946323924783554000451984436", "-4.4360363875948939664310572000"],
        ["10.427508642579134603413151009", "0", "0", "0", "0", "242.28349177525818288430175319",
         "165.20045171727028198505394887", "-374.54675472269020279518312152", "-22.113666853125306036270938578",
         "7.7334326684722638389603898808", "-30.674084731089398182061213626", "-9.3321305264302278729567221706",
         "15.697238121770843886131091075", "-31.139403219565177677282850411", "-9.3529243588444783865713862664",
         "35.816841486394083752465898540"],
        ["19.985053242002433820987653617", "0", "0", "0", "0", "-387.03730874935176555105901742",
         "-189.17813819516756882830838328", "527.80815920542364900561016686", "-11.573902539959630126141871134",
         "6.8812326946963000169666922661", "-1.0006050966910838403183860980", "0.77771377980534432092869265740",
         "-2.7782057523535084065932004339", "-60.196695231264120758267380846", "84.320405506677161018159903784",
         "11.992291136182789328035130030"],
        ["-25.693933462703749003312586129", "0", "0", "0", "0", "-154.18974869023643374053993627",
         "-231.52937917604549567536039109", "357.63911791061412378285349910", "93.405324183624310003907691704",
         "-37.458323136451633156875139351", "104.09964950896230045147246184", "29.840293426660503123344363579",
         "-43.533456590011143754432175058", "96.324553959188282948394950600", "-39.177261675615439165231486172",
         "-149.72683625798562581422125276"],
    ]
    return hairer([F(x) for x in b], 12, [[F(x) for x in row] for row in d])


def solve(matrix, right):
    """Gauss and Jordan, exactly."""
    rows = [list(row) + [x] for row, x in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(len(rows)):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def tsit5():
    """Tsitouras gives b_2 and b_7 in short decimals; the other five weights follow, power by power, from five of the
    conditions of order 4: sum_j p_jm {1, c_j, c_j^2, (A c)_j, c_j^3} is {1, 1/2, 1/3, 1/6, 1/4} at m = {1, 2, 3, 3, 4}
    and zero elsewhere.
    c_5 and the row A c to 80 digits: the method's coefficients as SciML's OrdinaryDiffEq.jl gives them."""
    c5 = F("0.9800255409045096857298102862870245954942137979563024768854764293221195950761080302604")
    c = [F(0), F(161, 1000), F(327, 1000), F(9, 10), c5, F(1), F(1)]
    a = [
        [],
        ["0.161"],
        ["-0.008480655492356988544426874250230774675121177393430391537369234245294192976164141156943",
         "0.3354806554923569885444268742502307746751211773934303915373692342452941929761641411569"],
        ["2.897153057105493432130432594192938764924887287701866490314866693455023795137503079289",
         "-6.359448489975074843148159912383825625952700647415626703305928850207288721235210244366",
         "4.362295432869581411017727318190886861027813359713760212991062156752264926097707165077"],
        ["5.325864828439256604428877920840511317836476253097040101202360397727981648835607691791",
         "-11.74888356406282787774717033978577296188744178259862899288666928009020615663593781589",
         "7.495539342889836208304604784564358155658679161518186721010132816213648793440552049753",
         "-0.09249506636175524925650207933207191611349983406029535244034750452930469056411389539635"],
        ["5.861455442946420028659251486982647890394337666164814434818157239052507339770711679748",
         "-12.92096931784710929170611868178335939541780751955743459166312250439928519268343184452",
         "8.159367898576158643180400794539253485181918321135053305748355423955009222648673734986",
         "-0.07158497328140099722453054252582973869127213147363544882721139659546372402303777878835",
         "-0.02826905039406838290900305721271224146717633626879770007617876201276764571291579142206"],
    ]
    b = ["0.09646076681806522951816731316512876333711995238157997181903319145764851595234062815396", "0.01",
         "0.4798896504144995747752495322905965199130404621990332488332634944254542060153074523509",
         "1.379008574103741893192274821856872770756462643091360525934940067397245698027561293331",
         "-3.290069515436080679901047585711363850115683290894936158531296799594813811049925401677",
         "2.324710524099773982415355918398765796109060233222962411944060046314465391054716027841"]
    ac = [sum((F(x) * y for x, y in zip(row, c)), F(0)) for row in a + [b]]
    conditions = [([F(1)] * 7, 1, F(1)), (c, 2, F(1, 2)), ([x**2 for x in c], 3, F(1, 3)), (ac, 3, F(1, 6)),
                  ([x**3 for x in c], 4, F(1, 4))]
    weights = [[F(0)] * 4 for _ in range(7)]
    weights[1] = [F(0), F("0.1317"), F("-0.2234"), F("0.1017")]
    weights[6] = [F(0), F("1.5"), F(-4), F("2.5")]
    unknown = [0, 2, 3, 4, 5]
    for m in range(4):
        matrix = [[values[j] for j in unknown] for values, _, _ in conditions]
        right = [(gamma if order == m + 1 else F(0)) - values[1] * weights[1][m] - values[6] * weights[6][m]
                 for values, order, gamma in conditions]
        for j, x in zip(unknown, solve(matrix, right)):
            # The inputs have 80 digits: what is below 1e-70 is zero.
            weights[j][m] = x if abs(x) > F(1, 10**70) else F(0)
    return weights


def rodas5p():
    """Steinebach 2023, in the form of Hairer & Wanner II, IV.7: with s = theta, r = 1 - theta,

      y - y0 = s (y1 - y0) + h s r (H1 + s H2 + s^2 H3),  H_l = sum h_lj k_j,  y1 - y0 = h sum m_j k_j.

    The first and the last stage of the table, which are evaluations at y0 and y1, have no weight."""
    m = [F(x) for x in ("-7.502846399306121", "2.561846144803919", "-11.627539656261098", "-0.18268767659942256",
                        "0.030198172008377946", "1", "1", "1")]
    h = [[F(x) for x in row] for row in (
        ("25.948786856663858", "-2.5579724845846235", "10.433815404888879", "-2.3679251022685204",
         "0.524948541321073", "1.1241088310450404", "0.4272876194431874", "-0.17202221070155493"),
        ("-9.91568850695171", "-0.9689944594115154", "3.0438037242978453", "-24.495224566215796",
         "20.176138334709044", "15.98066361424651", "-6.789040303419874", "-6.710236069923372"),
        ("11.419903575922262", "2.8879645146136994", "72.92137995996029", "80.12511834622643",
         "-52.072871366152654", "-59.78993625266729", "-0.15582684282751913", "4.883087185713722"))]
    nothing = [F(0)] * 4
    return [nothing] + [[m[j] + h[0][j], h[1][j] - h[0][j], h[2][j] - h[1][j], -h[2][j]] for j in range(8)] + [nothing]


def in_header(name):
    """The header's `.interpolant`, [stage][power] as doubles, trailing zeros added."""
    text = (pathlib.Path(__file__).parent / (name + ".h")).read_text()
    text = text[text.index(".interpolant = ") + len(".interpolant = "):]
    depth, end = 0, 0
    for end, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            break
    rows = eval(text[:end + 1].replace("{", "[").replace("}", "]"), {"__builtins__": {}})  # our own source
    degree = max(len(row) for row in rows)
    return [[float(x) for x in row] + [0.0] * (degree - len(row)) for row in rows]


def main():
    wrong = 0
    for name, derive in (("dopri5", dopri5), ("tsit5", tsit5), ("dop853", dop853), ("rodas5p", rodas5p)):
        derived = [[float(x) for x in row] for row in derive()]
        if derived == in_header(name):
            print(f"{name}: the header holds the derived weights")
            continue
        wrong += 1
        print(f"{name}: the header differs; derived:")
        for row in derived:
            print("  {" + ", ".join(repr(x) for x in row) + "},")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
